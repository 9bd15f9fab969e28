package listcmd

import (
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/terminal"
)

// page shows tools in full.
type page struct {
	width int
	color bool
	b     strings.Builder
}

// tool shows one tool; callAs is the name that calls it.
func (p *page) tool(t *registry.Tool, callAs string) {
	p.field("name", t.Name, terminal.Bold)
	if t.DisplayName != t.Name {
		p.field("display name", t.DisplayName, 0)
	}
	p.field("source", t.Source, 0)
	p.field("server tool", t.ServerTool, 0)
	p.field("declared in", t.Declared, 0)
	p.field("category", string(t.Category), 0)
	p.field("tags", strings.Join(t.Tags, ", "), 0)
	p.field("version", t.Version, 0)
	p.field("author", t.Author, 0)
	p.field("icon", t.Icon, 0)
	if t.Optional {
		p.field("optional", "yes", 0)
	}
	p.field("aliases", strings.Join(t.Aliases, ", "), 0)
	p.field("permissions", strings.Join(t.Permissions, ", "), 0)
	p.field("annotations", string(t.Annotations), 0)
	p.field("fingerprint", t.Fingerprint(), terminal.Dim)
	if t.Description != "" {
		p.title("description")
		p.block(t.Description)
	}
	if params := cli.ParamTable(&t.Definition); len(params.Rows) > 0 {
		p.title("params")
		p.indent(params.Text(p.width-2, p.color))
	}
	if len(t.OutputSchema) > 0 {
		p.title("output schema")
		p.indent(cli.JSONText(t.OutputSchema, p.color))
	}
	p.examples(t, callAs)
}

// field shows a short value beside its name.
func (p *page) field(name, value string, style terminal.Style) {
	if value != "" {
		p.line(terminal.Span{Text: fmt.Sprintf("%-14s", name+":"), Style: terminal.Dim}, terminal.Span{Text: terminal.Line(value), Style: style})
	}
}

// title opens a part of several lines.
func (p *page) title(name string) { p.line(terminal.Span{Text: name + ":", Style: terminal.Dim}) }

func (p *page) line(spans ...terminal.Span) {
	p.b.WriteString(terminal.Paint(spans, p.color) + "\n")
}

// indent shows lines that are laid out already.
func (p *page) indent(text string) {
	for line := range strings.Lines(cli.EndLine(text)) {
		if line != "\n" {
			p.b.WriteString("  ")
		}
		p.b.WriteString(line)
	}
}

// block shows a text of several lines, indented and broken at the width.
func (p *page) block(text string) {
	for line := range strings.SplitSeq(strings.TrimRight(terminal.Visible(text), "\n"), "\n") {
		for _, row := range terminal.WrapSpans([]terminal.Span{{Text: line}}, p.width-2) {
			p.b.WriteString("  " + terminal.Paint(row, false) + "\n")
		}
	}
}

func (p *page) examples(t *registry.Tool, callAs string) {
	if len(t.Examples) == 0 {
		return
	}
	p.title("examples")
	for _, e := range t.Examples {
		if e.Description != "" {
			p.line(terminal.Span{Text: "  # " + terminal.Line(e.Description), Style: terminal.Dim})
		}
		p.line(terminal.Span{Text: "  " + cli.CallLine(callAs, &t.Definition, e.Params)})
	}
}
