package overrides

import (
	"context"
	"fmt"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// project applies the expression of the override to a result. An error result
// stays unchanged if the expression fails or returns null for it, because an
// expression written for successful results would otherwise remove the error text.
func (o *override) project(ctx context.Context, r registry.Result) (registry.Result, error) {
	raw, err := Raw(r)
	if err != nil {
		return r, err
	}
	input, err := jq.Decode(raw)
	if err != nil {
		return r, err
	}
	v, err := o.result.ValueBriefly(ctx, input)
	switch {
	case r.IsError && (err != nil || v == nil):
		return r, nil
	case err != nil:
		return r, fmt.Errorf("overrides.%s.result failed: %w", o.named.Name, err)
	}
	text, structured, err := jq.Text(v)
	if err != nil {
		return r, err
	}
	r.Content, r.Structured, r.Display = []registry.Content{registry.TextContent(text)}, structured,
		registry.Display{Plain: true}
	return r, nil
}

// Raw returns a result as JSON, in the form that the expressions of overrides take
// as input.
func Raw(r registry.Result) ([]byte, error) {
	out := struct {
		Content    []registry.Content `json:"content"`
		Structured any                `json:"structuredContent,omitempty"`
		IsError    bool               `json:"isError"`
	}{Content: r.Content, IsError: r.IsError}
	if out.Content == nil {
		out.Content = []registry.Content{}
	}
	if len(r.Structured) > 0 {
		out.Structured = r.Structured
	}
	return jsonx.Marshal(out)
}
