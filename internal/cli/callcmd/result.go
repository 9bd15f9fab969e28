package callcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/registry"
)

// Document is the JSON of one call.
type Document struct {
	Tool          string                 `json:"tool"`                        // registered name
	OK            bool                   `json:"ok"`                          // the tool reported no error
	IsError       bool                   `json:"isError,omitempty"`           // the tool reported an error
	ErrorCategory registry.ErrorCategory `json:"errorCategory,omitempty"`     // stage in which the call failed
	Summary       string                 `json:"summary,omitempty"`           // the result in a line
	LLMContent    any                    `json:"llmContent"`                  // what the model reads: a string, or content blocks
	ReturnDisplay *registry.Display      `json:"returnDisplay,omitempty"`     // what a person sees instead
	Structured    json.RawMessage        `json:"structuredContent,omitempty"` // the tool's structured result, as sent
	Meta          json.RawMessage        `json:"_meta,omitempty"`             // metadata of an MCP server, as sent
	Locations     []registry.Location    `json:"locations,omitempty"`         // files that the call read or changed
	DurationMs    int64                  `json:"durationMs"`
	Truncated     bool                   `json:"truncated,omitempty"` // the result was cut (limits.output, limits.answer)
	Cached        bool                   `json:"cached,omitempty"`    // the result comes from the cache (toolOptions)
	Confined      bool                   `json:"confined,omitempty"`  // the program ran in the sandbox
	Attempts      int                    `json:"attempts,omitempty"`  // number of attempts, if more than one
}

// NewDocument returns the JSON of a result.
func NewDocument(t *registry.Tool, r registry.Result) Document {
	d := Document{
		Tool: t.Name, OK: !r.IsError, IsError: r.IsError, ErrorCategory: r.ErrorCategory, Summary: r.Summary,
		LLMContent: Content(r.Content), Structured: r.Structured, Meta: r.Meta, Locations: r.Locations,
		DurationMs: r.Duration.Milliseconds(), Truncated: r.Truncated, Cached: r.Cached, Confined: r.Confined, Attempts: r.Attempts,
	}
	if display := displayOf(&r); !display.IsZero() {
		d.ReturnDisplay = &display
	}
	return d
}

// displayOf returns what a person is shown of a result. If the tool provides no display,
// that is the text for the model, or if that is empty too, the summary.
func displayOf(r *registry.Result) registry.Display {
	if !r.Display.IsZero() {
		return r.Display
	}
	return registry.Display{Text: cmp.Or(r.Text(), r.Summary)}
}

// Content returns a string if the only part is plain text, and the parts
// otherwise.
func Content(parts []registry.Content) any {
	if len(parts) == 0 {
		return ""
	}
	if c := parts[0]; len(parts) == 1 && c.Type == registry.ContentText && c.Annotations == nil && c.Meta == nil {
		return c.Text
	}
	return parts
}

func (p *printer) print(ctx context.Context, t *registry.Tool, r registry.Result) error {
	if p.outputDir == "" {
		return p.write(ctx, t, r, 0)
	}
	saved, err := cli.SaveParts(p.outputDir, t.Name, r.Content)
	// The tool has run: print the result even if files could not be saved.
	return errors.Join(p.write(ctx, t, r, saved), err)
}

func (p *printer) write(ctx context.Context, t *registry.Tool, r registry.Result, saved int) error {
	switch {
	case p.ios.JSON:
		return p.ios.PrintJSON(NewDocument(t, r))
	case p.raw:
		return cli.WriteRaw(p.ios.Results(), r.Content)
	case saved == 0 && (p.ios.OutTTY || p.ios.Color(false)):
		return p.show(ctx, t, r)
	case p.ios.OutTTY:
		_, err := io.WriteString(p.ios.Out, cli.ResultText(r))
		return err
	}
	return cli.WriteResult(p.ios.Results(), r)
}
