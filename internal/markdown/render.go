package markdown

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/terminal"
)

// Options say what the screen is like. The zero value is a screen of 80 columns
// without colours.
type Options struct {
	// Width is the columns of the screen; 0 means 80. Less than 20 counts as 20.
	Width int
	// Color allows styles. Without them the marks of emphasis, code and
	// headings stay in the text, so that nothing is lost.
	Color bool
}

// maxText is the longest text that is laid out, in bytes.
const maxText = 1 << 20

// Render lays Markdown text out. It ends in a newline unless it is empty. Text
// that is one JSON value, or longer than a megabyte, is only made visible.
func Render(text string, o Options) string {
	if len(text) > maxText || isJSON(text) {
		return ended(terminal.Visible(text))
	}
	if o.Width <= 0 {
		o.Width = 80
	}
	r := &renderer{color: o.Color}
	r.blocks(parse(lines(text), 0), frame{width: max(o.Width, 20)})
	return r.b.String()
}

func ended(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// isJSON tells data from prose that happens to begin with a bracket.
func isJSON(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text))
}

// lines splits text that is safe to show, with tabs expanded.
func lines(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	all := strings.Split(strings.Trim(terminal.Visible(text), "\n"), "\n")
	for i, l := range all {
		all[i] = strings.TrimRight(expandTabs(l), " ")
	}
	return all
}

// expandTabs puts blanks in place of tabs: to every fourth column where they
// indent a line, to every eighth behind that, as a terminal does.
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
			column += terminal.Width(part)
			stop = 8
		}
	}
	return b.String()
}

// frame is where blocks are drawn: behind first on the next row, then behind
// rest.
type frame struct {
	width       int
	first, rest []terminal.Span
	depth       int // of lists
}

// inside returns the frame within f of what stands behind a mark.
func (f frame) inside(first, rest terminal.Span) frame {
	f.width = max(f.width-terminal.Width(first.Text), 10)
	f.first = append(f.first[:len(f.first):len(f.first)], first)
	f.rest = append(f.rest[:len(f.rest):len(f.rest)], rest)
	return f
}

// next returns the frame of the rows behind the first.
func (f frame) next() frame {
	f.first = f.rest
	return f
}

type renderer struct {
	color bool
	b     strings.Builder
}

// row writes one row in its frame.
func (r *renderer) row(f frame, spans []terminal.Span) {
	line := terminal.Paint(append(f.first[:len(f.first):len(f.first)], spans...), r.color)
	r.b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// wrapped writes one line in as many rows as it takes, the further ones indented.
func (r *renderer) wrapped(f frame, spans []terminal.Span, indent int) {
	room := max(f.width, 10)
	for i, row := range terminal.WrapSpans(spans, max(room-indent, 10)) {
		if i > 0 {
			f = f.next()
		}
		if indent > 0 {
			row = append([]terminal.Span{{Text: strings.Repeat(" ", indent)}}, row...)
		}
		r.row(f, row)
	}
}

func (r *renderer) blocks(all []block, f frame) {
	for i := range all {
		if i > 0 {
			f = f.next()
			if all[i].gap {
				r.row(f, nil)
			}
		}
		r.block(&all[i], f)
	}
}

func (r *renderer) block(b *block, f frame) {
	switch b.kind {
	case paragraph:
		r.paragraph(b.lines, f)
	case heading:
		style := terminal.Bold
		if b.level == 1 {
			style |= terminal.Underline
		}
		r.wrapped(f, restyled(oneLine(strings.Repeat("#", b.level)+" "+b.lines[0], r.color), style), 0)
	case rule:
		r.row(f, []terminal.Span{{Text: strings.Repeat("─", f.width), Style: terminal.Dim}})
	case code:
		r.code(b, f)
	case diff:
		for _, row := range terminal.Diff(strings.Join(b.lines, "\n")) {
			r.row(f, row)
			f = f.next()
		}
	case quote:
		mark := terminal.Span{Text: "│ ", Style: terminal.Dim}
		r.blocks(b.children, f.inside(mark, mark))
	case list:
		r.list(b, f)
	case table:
		r.table(b, f)
	}
}

// codeIndent sets code off.
const codeIndent = "    "

// code writes lines as they are: the terminal breaks them where it must, so
// that they can be copied.
func (r *renderer) code(b *block, f frame) {
	if b.info == "diff" || b.info == "patch" {
		for _, row := range terminal.Diff(strings.Join(b.lines, "\n")) {
			r.row(f, append([]terminal.Span{{Text: codeIndent}}, row...))
			f = f.next()
		}
		return
	}
	for _, l := range b.lines {
		r.row(f, []terminal.Span{{Text: codeIndent}, {Text: l, Style: terminal.Cyan}})
		f = f.next()
	}
}

func (r *renderer) list(b *block, f frame) {
	bullets := []string{"•", "◦", "▪"}
	for i := range b.children {
		item := &b.children[i]
		if i > 0 {
			f = f.next()
			if item.gap {
				r.row(f, nil)
			}
		}
		mark := terminal.Span{Text: bullets[f.depth%len(bullets)] + " "}
		switch {
		case item.task == "x":
			mark = terminal.Span{Text: "[x] ", Style: terminal.Green}
		case item.task != "":
			mark = terminal.Span{Text: "[ ] "}
		case b.ordered:
			mark.Text = fmt.Sprintf("%d%s ", b.level+i, b.info)
		}
		inner := f.inside(mark, terminal.Span{Text: strings.Repeat(" ", terminal.Width(mark.Text))})
		inner.depth++
		if len(item.children) == 0 {
			r.row(inner, nil)
			continue
		}
		r.blocks(item.children, inner)
	}
}

// paragraph keeps its lines, unless it is prose that its author broke at a
// width that the screen does not have: that is broken anew.
func (r *renderer) paragraph(text []string, f frame) {
	if prose(text, f.width) {
		for i, l := range text[:len(text)-1] {
			text[i] = strings.TrimRight(l, " ") + " "
		}
		for i, l := range text[1:] {
			text[i+1] = strings.TrimLeft(l, " ")
		}
		text = []string{strings.Join(text, "")}
	}
	for i, line := range splitLines(inline(strings.Join(text, "\n"), r.color)) {
		if i > 0 {
			f = f.next()
		}
		indent := 0
		if len(line) > 0 { // an indented line keeps its indent in every row
			indent = min(len(line[0].Text)-len(strings.TrimLeft(line[0].Text, " ")), f.width/2)
			line[0].Text = line[0].Text[indent:]
		}
		r.wrapped(f, line, indent)
	}
}

// prose reports whether every line but the last was ended because the first
// word of the next had no room, and a line is wider than the screen.
func prose(text []string, width int) bool {
	const narrowest, widest = 60, 120
	author := 0
	for _, l := range text {
		author = max(author, terminal.Width(l))
	}
	if len(text) < 2 || author <= width || author < narrowest || author > widest {
		return false
	}
	for i, l := range text[1:] {
		word, _, _ := strings.Cut(strings.TrimLeft(l, " "), " ")
		if strings.HasSuffix(text[i], `\`) || terminal.Width(text[i])+1+terminal.Width(word) <= author {
			return false
		}
	}
	return true
}

func splitLines(spans []terminal.Span) [][]terminal.Span {
	out := [][]terminal.Span{nil}
	for _, s := range spans {
		for i, part := range strings.Split(s.Text, "\n") {
			if i > 0 {
				out = append(out, nil)
			}
			if part != "" {
				out[len(out)-1] = append(out[len(out)-1], terminal.Span{Text: part, Style: s.Style})
			}
		}
	}
	return out
}

func restyled(spans []terminal.Span, add terminal.Style) []terminal.Span {
	for i := range spans {
		spans[i].Style |= add
	}
	return spans
}
