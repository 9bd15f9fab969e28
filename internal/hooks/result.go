package hooks

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/registry"
)

// resultMessage is what a hook reads of a result, in the names of `call --json`.
type resultMessage struct {
	OK            bool                   `json:"ok"`
	IsError       bool                   `json:"isError,omitempty"`
	ErrorCategory registry.ErrorCategory `json:"errorCategory,omitempty"`
	LLMContent    []registry.Content     `json:"llmContent"`
	Structured    json.RawMessage        `json:"structuredContent,omitempty"`
	DurationMs    int64                  `json:"durationMs"`
	Truncated     bool                   `json:"truncated,omitempty"`
}

func newResultMessage(r registry.Result) *resultMessage {
	content := r.Content
	if content == nil {
		content = []registry.Content{}
	}
	return &resultMessage{OK: !r.IsError, IsError: r.IsError, ErrorCategory: r.ErrorCategory, LLMContent: content,
		Structured: r.Structured, DurationMs: r.Duration.Milliseconds(), Truncated: r.Truncated}
}

// part is a content part that a hook may give.
type part struct {
	Type     registry.ContentType `json:"type"`
	Text     string               `json:"text"`
	Data     []byte               `json:"data"` // Base64
	MIMEType string               `json:"mimeType"`
}

// replace makes the result that a hook gives. Of the tool's own nothing stays
// but how it came about: what the hook took out must not come back through a
// display text or a location.
func replace(old registry.Result, raw json.RawMessage) (registry.Result, error) {
	var in struct {
		LLMContent json.RawMessage `json:"llmContent"`
		IsError    bool            `json:"isError"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := decodeKnown(raw, &in); err != nil {
		return registry.Result{}, fmt.Errorf("its result is not understood: %w; it takes llmContent, isError and structuredContent", err)
	}
	r := registry.Result{IsError: in.IsError, Structured: in.Structured, Duration: old.Duration, Cached: old.Cached, Attempts: old.Attempts}
	if r.IsError {
		r.ErrorCategory = old.ErrorCategory
		if r.ErrorCategory == "" {
			r.ErrorCategory = registry.ErrorExecution
		}
	}
	var err error
	r.Content, err = parseContent(in.LLMContent)
	return r, err
}

func parseContent(raw json.RawMessage) ([]registry.Content, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil && string(raw) != "null" {
		return []registry.Content{registry.TextContent(text)}, nil
	}
	var parts []part
	if len(raw) == 0 || json.Unmarshal(raw, &parts) != nil || parts == nil {
		return nil, errors.New("its result needs llmContent, a string or a list of parts")
	}
	out := make([]registry.Content, len(parts))
	for i, p := range parts {
		switch p.Type {
		case registry.ContentText:
			out[i] = registry.TextContent(p.Text)
		case registry.ContentImage, registry.ContentAudio:
			out[i] = registry.Content{Type: p.Type, Data: append([]byte{}, p.Data...), MIMEType: p.MIMEType}
		default:
			return nil, fmt.Errorf("part %d of its result has the type %q; it may give text, image and audio", i+1, p.Type)
		}
	}
	return out, nil
}
