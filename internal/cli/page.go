package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
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
	for line := range strings.Lines(ui.EndLine(text)) {
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
		p.indent(jsonText(data, p.Color))
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
// has no params. [ui.Table.Text] formats it.
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

// Page collects the results of the run, so that a pager shows them if they are
// longer than the screen. It does nothing if stdout is not a terminal.
func (o *IO) Page() {
	if _, off := o.pager(); !off && o.OutTTY {
		o.pipe.Collect()
	}
}

// pager returns the command line of the user's pager; "" means the default. off reports
// whether paging is disabled.
func (o *IO) pager() (line string, off bool) {
	if o.noPager || o.vars.Get("TERM") == "dumb" {
		return "", true
	}
	for _, name := range []string{"TOOLREG_PAGER", "PAGER"} {
		if line, ok := o.vars.Lookup(name); ok {
			line = strings.TrimSpace(line)
			return line, line == "" || line == "cat"
		}
	}
	return "", false
}

// rows returns how many rows of the screen a text needs.
func (o *IO) rows(page string) int {
	n, width := 0, o.Width()
	for line := range strings.Lines(page) {
		n += 1 + max(ui.Width(strings.TrimSuffix(line, "\n"))-1, 0)/width
	}
	return n
}

// Color reports whether to use colors for an output that may be a terminal.
func (o *IO) Color(isTTY bool) bool {
	switch o.color {
	case "always":
		return true
	case "never":
		return false
	}
	if force := o.vars.Get("CLICOLOR_FORCE"); force != "" && force != "0" {
		return o.vars.Get("NO_COLOR") == ""
	}
	return isTTY && o.vars.Get("NO_COLOR") == "" && o.vars.Get("TERM") != "dumb"
}

const minWidth = 20

// Width returns the width for formatting: COLUMNS if it is set, as in other
// programs, or else that of the terminal on stdout, or 80 if it is unknown.
func (o *IO) Width() int {
	if n, err := strconv.Atoi(o.vars.Get("COLUMNS")); err == nil && n > 0 {
		return max(min(n, 10_000), minWidth)
	}
	width, _ := o.size()
	return max(width, minWidth)
}

// size returns the columns and rows of the terminal on stdout, or 80 by 24 if
// unknown.
func (o *IO) size() (columns, rows int) { return ui.SizeOf(o.Stdout())() }

// pipeWidth is the width of a pipe, large enough that nothing is wrapped.
const pipeWidth = 1 << 20

// WrapWidth returns the width at which long text on stdout is wrapped.
func (o *IO) WrapWidth() int {
	if o.OutTTY {
		return o.Width()
	}
	return pipeWidth
}

// WithFailed returns a number with its noun and, if any failed, how many.
func WithFailed(n int, noun string, failed int) string {
	if failed == 0 {
		return text.Count(n, noun)
	}
	return text.Count(n, noun) + ", " + strconv.Itoa(failed) + " failed"
}

// Block indents foreign text of several lines.
func Block(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(ui.Visible(s), "\n"), "\n", "\n  ") + "\n"
}

// LockChange describes a change of a tool's definition in one line, followed by its diff if
// diffs is set.
func LockChange(c lock.Change, diffs bool) string {
	mark := map[string]string{lock.Added: "+", lock.Removed: "-", lock.Changed: "~"}[c.Kind]
	name := c.Name
	if c.Version != "" {
		name += "@" + c.Version
	}
	line := mark + " " + ui.Line(c.Source) + " " + ui.Line(name)
	if len(c.Parts) > 0 {
		line += ": " + lock.PartNames(c.Parts) + " changed"
	}
	line += "\n"
	if c.Diff != "" && diffs {
		line += Block(c.Diff)
	}
	return line
}

// OrEmpty returns an empty slice for nil, so that JSON has [] instead of null.
func OrEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return slices.Clip(s)
}

// Override is the JSON form of an override in the settings and the tool it changed.
type Override struct {
	Origin   string               `json:"origin"` // file:line
	Entry    json.RawMessage      `json:"entry"`  // as in the settings, with secrets masked
	Upstream *registry.Definition `json:"upstream"`
	// Shape is the tool with the override; absent if the document already has it.
	Shape *registry.Definition `json:"shape,omitempty"`
}

// NewOverride returns the override of a tool, nil if it has none.
func NewOverride(t *registry.Tool) *Override {
	if t.Reshaped == nil {
		return nil
	}
	return &Override{Origin: t.Reshaped.Origin, Entry: t.Reshaped.Shown, Upstream: t.Upstream().AsSent()}
}
