package content

import (
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/terminal"
)

// Page shows a tool in full, part by part, for a screen of a width. Its text is
// painted. Make it with the first two fields.
type Page struct {
	Width int
	Color bool
	b     strings.Builder
}

// String is what was shown until now.
func (p *Page) String() string { return p.b.String() }

// Space ends a part with an empty line, where there was any.
func (p *Page) Space() {
	if p.b.Len() > 0 {
		p.b.WriteString("\n")
	}
}

// Field shows a short value beside its name.
func (p *Page) Field(name, value string, style terminal.Style) {
	if value == "" {
		return
	}
	head := terminal.Span{Text: fmt.Sprintf("%-*s", fieldName, name+":"), Style: terminal.Dim}
	for _, row := range terminal.WrapSpans([]terminal.Span{{Text: terminal.Line(value), Style: style}}, max(p.Width-fieldName, 20)) {
		p.line(append([]terminal.Span{head}, row...)...)
		head = terminal.Span{Text: strings.Repeat(" ", fieldName)}
	}
}

// fieldName is the width of the names of fields.
const fieldName = 14

// Title opens a part of several lines.
func (p *Page) Title(name string) { p.line(terminal.Span{Text: name + ":", Style: terminal.Dim}) }

func (p *Page) line(spans ...terminal.Span) {
	p.b.WriteString(terminal.Paint(spans, p.Color) + "\n")
}

// indent shows lines that are laid out already.
func (p *Page) indent(text string) {
	for line := range strings.Lines(cli.EndLine(text)) {
		if line != "\n" {
			p.b.WriteString("  ")
		}
		p.b.WriteString(line)
	}
}

// Block shows a text of several lines, indented and broken at the width.
func (p *Page) Block(text string) {
	for line := range strings.SplitSeq(strings.TrimRight(terminal.Visible(text), "\n"), "\n") {
		for _, row := range terminal.WrapSpans([]terminal.Span{{Text: line}}, p.Width-2) {
			p.b.WriteString(strings.TrimRight("  "+terminal.Paint(row, false), " ") + "\n")
		}
	}
}

// Params shows the table of the params of a tool, if it has any.
func (p *Page) Params(t *registry.Tool) {
	if params := cli.ParamTable(&t.Definition); len(params.Rows) > 0 {
		p.Title("params")
		p.indent(params.Text(p.Width-2, p.Color))
	}
}

// JSON shows a part that is JSON.
func (p *Page) JSON(title string, data []byte) {
	if len(data) > 0 {
		p.Title(title)
		p.indent(cli.JSONText(data, p.Color))
	}
}

// Examples shows the examples of a tool as commands; callAs is the name that calls
// it.
func (p *Page) Examples(t *registry.Tool, callAs string) {
	if len(t.Examples) == 0 {
		return
	}
	p.Title("examples")
	for _, e := range t.Examples {
		if e.Description != "" {
			p.line(terminal.Span{Text: "  # " + terminal.Line(e.Description), Style: terminal.Dim})
		}
		p.line(terminal.Span{Text: "  " + cli.CallLine(callAs, &t.Definition, e.Params)})
	}
}
