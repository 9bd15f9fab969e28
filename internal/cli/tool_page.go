package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/ui"
)

// Page formats the details of a tool, part by part, as styled text for a screen of a
// given width. Set the first two fields to create one.
type Page struct {
	Width int
	Color bool
	b     strings.Builder
}

// String returns the text so far.
func (p *Page) String() string { return p.b.String() }

// Space adds an empty line unless the page is empty.
func (p *Page) Space() {
	if p.b.Len() > 0 {
		p.b.WriteString("\n")
	}
}

// Field adds a short value next to its name.
func (p *Page) Field(name, value string, style ui.Style) {
	if value == "" {
		return
	}
	head := ui.Span{Text: fmt.Sprintf("%-*s", fieldName, name+":"), Style: ui.Dim}
	for _, row := range ui.WrapSpans([]ui.Span{{Text: ui.Line(value), Style: style}}, max(p.Width-fieldName, 20)) {
		p.line(append([]ui.Span{head}, row...)...)
		head = ui.Span{Text: strings.Repeat(" ", fieldName)}
	}
}

// fieldName is the width of the column of field names.
const fieldName = 14

// Title begins a part of several lines.
func (p *Page) Title(name string) { p.line(ui.Span{Text: name + ":", Style: ui.Dim}) }

func (p *Page) line(spans ...ui.Span) {
	p.b.WriteString(ui.Paint(spans, p.Color) + "\n")
}

// indent adds formatted lines.
func (p *Page) indent(text string) {
	for line := range strings.Lines(EndLine(text)) {
		if line != "\n" {
			p.b.WriteString("  ")
		}
		p.b.WriteString(line)
	}
}

// Block adds a text of several lines, indented and wrapped.
func (p *Page) Block(text string) {
	for line := range strings.SplitSeq(strings.TrimRight(ui.Visible(text), "\n"), "\n") {
		for _, row := range ui.WrapSpans([]ui.Span{{Text: line}}, p.Width-2) {
			p.b.WriteString(strings.TrimRight("  "+ui.Paint(row, false), " ") + "\n")
		}
	}
}

// Params adds the table of a tool's params, if it has any.
func (p *Page) Params(ctx context.Context, t *registry.Tool) {
	if params := paramTable(ctx, &t.Definition); len(params.Rows) > 0 {
		p.Title("params")
		p.indent(params.Text(p.Width-2, p.Color))
	}
}

// JSON adds a part that is JSON.
func (p *Page) JSON(title string, data []byte) {
	if len(data) > 0 {
		p.Title(title)
		p.indent(JSONText(data, p.Color))
	}
}

// Examples adds the examples of a tool as commands; callAs is the name to call
// it.
func (p *Page) Examples(t *registry.Tool, callAs string) {
	if len(t.Examples) == 0 {
		return
	}
	p.Title("examples")
	for _, e := range t.Examples {
		if e.Description != "" {
			p.line(ui.Span{Text: "  # " + ui.Line(e.Description), Style: ui.Dim})
		}
		p.line(ui.Span{Text: "  " + CallLine(callAs, &t.Definition, e.Params)})
	}
}

// paramTable returns the table of a tool's params. It has no rows if the tool
// has no params. [Table.Text] formats it.
func paramTable(ctx context.Context, def *registry.Definition) *ui.Table {
	t := &ui.Table{Header: []string{"PARAM", "TYPE", "REQUIRED", "DEFAULT", "ALLOWED", "EXAMPLE", "DESCRIPTION"},
		Whole: []string{"DESCRIPTION", "ALLOWED", "EXAMPLE", "DEFAULT", "TYPE"}}
	for _, p := range args.WithoutInvalidExamples(ctx, def, args.Describe(def)) {
		required := "no"
		if p.Required {
			required = "yes"
		}
		t.Add(p.Name, p.Type, required, p.Default, p.Allowed, QuoteWords(p.Example), p.Description)
	}
	t.DropEmpty("DEFAULT", "ALLOWED")
	return t
}
