package markdown

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"

	"github.com/toolreg/toolreg/internal/ui"
)

// Options describes the screen. The zero value is a screen of 80 columns without
// colors.
type Options struct {
	// Width is the number of columns; 0 means 80, and less than 20 means 20.
	Width int
	// Color enables styles. Without it the marks of emphasis, code and
	// headings are kept, so that no information is lost.
	Color bool
}

// maxText is the longest text that is formatted, in bytes.
const maxText = 1 << 20

// Render formats Markdown text. The output ends with a newline unless it is
// empty. Text that is one JSON value, or longer than a megabyte, is only
// escaped.
func Render(text string, o Options) string {
	if len(text) > maxText || isJSON(text) {
		return ui.EndLine(ui.Visible(text))
	}
	if o.Width <= 0 {
		o.Width = 80
	}
	r := &renderer{document: parse(safeText(text), o.Color), color: o.Color}
	r.blocks(r.root, frame{width: max(o.Width, 20)})
	return r.b.String()
}

// frame is the area in which blocks are drawn: the next row begins with first, the
// others with rest.
type frame struct {
	width       int
	first, rest []ui.Span
	depth       int // nesting of lists
}

// inside returns the frame within f for what follows a mark.
func (f frame) inside(first, rest ui.Span) frame {
	f.width = max(f.width-ui.Width(first.Text), 10)
	f.first = append(f.first[:len(f.first):len(f.first)], first)
	f.rest = append(f.rest[:len(f.rest):len(f.rest)], rest)
	return f
}

func (f frame) next() frame {
	f.first = f.rest
	return f
}

type renderer struct {
	*document
	color bool
	b     strings.Builder
}

func (r *renderer) row(f frame, spans []ui.Span) {
	line := ui.Paint(append(f.first[:len(f.first):len(f.first)], spans...), r.color)
	r.b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// wrapped writes one line in as many rows as necessary, indenting all but the
// first.
func (r *renderer) wrapped(f frame, spans []ui.Span, indent int) {
	room := max(f.width, 10)
	for i, row := range ui.WrapSpans(spans, max(room-indent, 10)) {
		if i > 0 {
			f = f.next()
		}
		if indent > 0 {
			row = append([]ui.Span{{Text: strings.Repeat(" ", indent)}}, row...)
		}
		r.row(f, row)
	}
}

func (r *renderer) blocks(parent ast.Node, f frame) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil {
			f = f.next()
			if r.afterBlank(n) || n.Kind() == ast.KindHeading {
				r.row(f, nil)
			}
		}
		r.block(n, f)
	}
}

func (r *renderer) block(n ast.Node, f frame) {
	switch n := n.(type) {
	case *ast.Paragraph, *ast.TextBlock:
		r.paragraph(n, f)
	case *ast.Heading:
		r.heading(n, f)
	case *ast.ThematicBreak:
		r.row(f, []ui.Span{{Text: strings.Repeat("─", f.width), Style: ui.Dim}})
	case *ast.CodeBlock:
		r.code(n, "", f)
	case *ast.FencedCodeBlock:
		r.code(n, strings.ToLower(string(n.Language(r.source))), f)
	case *diffBlock:
		r.diff(n, "", f)
	case *verbatim:
		r.lines(n, f)
	case *ast.Blockquote:
		mark := ui.Span{Text: "│ ", Style: ui.Dim}
		r.blocks(n, f.inside(mark, mark))
	case *ast.List:
		r.list(n, f)
	case *tableBlock:
		r.table(n, f)
	}
}

// afterBlank reports whether a block follows a blank line, or an empty line of
// a quote. It does not use goldmark's own flag, which is
// also set after a fence.
func (r *renderer) afterBlank(n ast.Node) bool {
	start := r.lineStart(n.Pos())
	return start > 0 && len(bytes.Trim(r.source[r.lineStart(start-1):start], " >\n")) == 0
}

func (r *renderer) linesOf(n ast.Node) []string {
	var out []string
	for _, line := range n.Lines().Sliced(0, n.Lines().Len()) {
		out = append(out, strings.TrimSuffix(string(line.Value(r.source)), "\n"))
	}
	return out
}

// lines writes the lines of a block unchanged; the terminal breaks long lines.
func (r *renderer) lines(n ast.Node, f frame) {
	for _, l := range r.linesOf(n) {
		r.row(f, []ui.Span{{Text: l}})
		f = f.next()
	}
}

func (r *renderer) heading(n *ast.Heading, f frame) {
	style := ui.Bold
	if n.Level == 1 {
		style |= ui.Underline
	}
	p := painter{document: r.document, color: r.color}
	p.add(strings.Repeat("#", n.Level)+" ", 0)
	p.children(n, 0)
	for _, line := range splitLines(restyled(p.out, style)) {
		r.wrapped(f, line, 0)
		f = f.next()
	}
}

const codeIndent = "    "

// code writes lines unchanged, so that they can be copied; the terminal breaks long
// lines.
func (r *renderer) code(n ast.Node, language string, f frame) {
	if language == "diff" || language == "patch" {
		r.diff(n, codeIndent, f)
		return
	}
	for _, l := range r.linesOf(n) {
		r.row(f, []ui.Span{{Text: codeIndent}, {Text: l, Style: ui.Cyan}})
		f = f.next()
	}
}

func (r *renderer) diff(n ast.Node, indent string, f frame) {
	for _, row := range ui.Diff(strings.Join(r.linesOf(n), "\n")) {
		r.row(f, append([]ui.Span{{Text: indent}}, row...))
		f = f.next()
	}
}

func (r *renderer) list(n *ast.List, f frame) {
	bullets := []string{"•", "◦", "▪"}
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		if item.PreviousSibling() != nil {
			f = f.next()
			if r.afterBlank(item) {
				r.row(f, nil)
			}
		}
		mark := ui.Span{Text: bullets[f.depth%len(bullets)] + " "}
		switch checked, task := r.tasks[item]; {
		case checked:
			mark = ui.Span{Text: "[x] ", Style: ui.Green}
		case task:
			mark = ui.Span{Text: "[ ] "}
		case n.IsOrdered():
			mark.Text = fmt.Sprintf("%d%c ", number, n.Marker)
		}
		number++
		inner := f.inside(mark, ui.Span{Text: strings.Repeat(" ", ui.Width(mark.Text))})
		inner.depth++
		if !item.HasChildren() {
			r.row(inner, nil)
			continue
		}
		r.blocks(item, inner)
	}
}

// paragraph keeps the line breaks, except in prose that its author wrapped at a
// width greater than the screen's, which is wrapped again.
func (r *renderer) paragraph(n ast.Node, f frame) {
	p := painter{document: r.document, color: r.color, joined: prose(r.linesOf(n), f.width)}
	if first := n.Lines().At(0).Start; !p.joined {
		p.add(strings.Repeat(" ", r.indents[r.lineStart(first)]), 0)
	}
	p.children(n, 0)
	for i, line := range splitLines(p.out) {
		if i > 0 {
			f = f.next()
		}
		indent := 0
		if len(line) > 0 { // each row keeps the indent of its line
			indent = min(len(line[0].Text)-len(strings.TrimLeft(line[0].Text, " ")), f.width/2)
			line[0].Text = line[0].Text[indent:]
		}
		r.wrapped(f, line, indent)
	}
}

// table formats a table. If the screen is too narrow, its lines are written unchanged.
func (r *renderer) table(t *tableBlock, f frame) {
	var rows [][][]ui.Span
	for cell := t.FirstChild(); cell != nil; {
		row := make([][]ui.Span, len(t.align))
		for i := range row {
			p := painter{document: r.document, color: r.color, joined: true, cell: true}
			p.children(cell, 0)
			for n := range p.out {
				p.out[n].Text = oneLine(p.out[n].Text)
			}
			row[i], cell = p.out, cell.NextSibling()
		}
		rows = append(rows, row)
	}
	lines, ok := tableLines(rows, t.align, f.width)
	if !ok {
		r.lines(t, f)
	}
	for _, line := range lines {
		r.row(f, line)
		f = f.next()
	}
}

// isJSON distinguishes JSON from prose that begins with a bracket.
func isJSON(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text))
}

// safeText makes text safe to show, expands tabs and removes trailing blanks.
func safeText(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	all := strings.Split(strings.Trim(ui.Visible(text), "\n"), "\n")
	for i, l := range all {
		all[i] = strings.TrimRight(expandTabs(l), " ")
	}
	return strings.Join(all, "\n") + "\n"
}

// expandTabs replaces tabs with blanks: to every fourth column in the indent of
// a line, and to every eighth after it, as a terminal does.
func expandTabs(line string) string {
	if !strings.Contains(line, "\t") {
		return line
	}
	var b strings.Builder
	column, stop := 0, 4
	for i, part := range strings.Split(line, "\t") {
		if i > 0 {
			n := stop - column%stop
			b.WriteString(strings.Repeat(" ", n))
			column += n
		}
		if part != "" {
			b.WriteString(part)
			column += ui.Width(part)
			stop = 8
		}
	}
	return b.String()
}

// prose reports whether the author wrapped the text, that is, every line except the
// last ends where the next word did not fit, and a line is wider than the screen.
func prose(text []string, width int) bool {
	const narrowest, widest = 60, 120
	author := 0
	for _, l := range text {
		author = max(author, ui.Width(l))
	}
	if len(text) < 2 || author <= width || author < narrowest || author > widest {
		return false
	}
	for i, l := range text[1:] {
		word, _, _ := strings.Cut(strings.TrimLeft(l, " "), " ")
		if strings.HasSuffix(text[i], `\`) || ui.Width(text[i])+1+ui.Width(word) <= author {
			return false
		}
	}
	return true
}
