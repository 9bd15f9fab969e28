package markdown

import (
	"bytes"
	"html"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"

	"github.com/toolreg/toolreg/internal/ui"
)

// painter converts the inline nodes of one block to spans, in which a line
// break is a newline.
type painter struct {
	*document
	color  bool
	joined bool // lines are joined with blanks
	cell   bool // in a table
	out    []ui.Span
}

func (p *painter) add(text string, style ui.Style) {
	p.out = append(p.out, ui.Span{Text: text, Style: style})
}

// children paints the content of a node in a style.
func (p *painter) children(parent ast.Node, style ui.Style) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			p.text(n, style)
		case *ast.CodeSpan:
			p.code(n, style)
		case *struck:
			p.children(n, style|ui.Struck)
		case *ast.Emphasis:
			p.children(n, style|[]ui.Style{ui.Italic, ui.Bold}[n.Level-1])
		case *ast.AutoLink:
			p.add(string(n.Label(p.source)), style|ui.Blue)
		case *ast.Link:
			p.link(n, "", n.Destination, n.Title, style)
		case *ast.Image:
			p.link(n, "image", n.Destination, n.Title, style)
		default:
			p.children(n, style)
		}
	}
}

func (p *painter) text(n *ast.Text, style ui.Style) {
	p.add(unescape(string(n.Segment.Value(p.source)), true), style)
	if !n.SoftLineBreak() && !n.HardLineBreak() {
		return
	}
	if p.joined {
		p.add(" ", style)
		return
	}
	next := n.Segment.Stop + bytes.IndexByte(p.source[n.Segment.Stop:], '\n') + 1
	p.add("\n"+strings.Repeat(" ", p.indents[next]), style)
}

// code paints a code span; without colors it keeps the backticks.
func (p *painter) code(n *ast.CodeSpan, style ui.Style) {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		b.Write(c.(*ast.Text).Segment.Value(p.source))
	}
	content := b.String()
	if p.cell {
		content = strings.ReplaceAll(content, `\|`, "|")
	}
	if p.joined {
		content = strings.ReplaceAll(content, "\n", " ")
	}
	if p.color {
		p.add(content, style|ui.Cyan)
		return
	}
	marks := p.source[n.Pos():]
	marks = marks[:len(marks)-len(bytes.TrimLeft(marks, "`"))]
	if first := n.FirstChild().(*ast.Text); first.Segment.Start > n.Pos()+len(marks) { // the parser removed a blank
		content = " " + content + " "
	}
	p.add(string(marks)+content+string(marks), style)
}

// link paints a link with its URL, which is always shown because the text may
// show a different one.
func (p *painter) link(n ast.Node, noLabel string, destination, title []byte, style ui.Style) {
	if len(destination) == 0 { // it has no target
		p.add("[", style)
		p.children(n, style)
		p.add("]()", style)
		return
	}
	address := unescape(string(destination), false)
	if title != nil {
		address += ` "` + oneLine(unescape(string(title), false)) + `"`
	}
	inner := painter{document: p.document, color: p.color, joined: p.joined, cell: p.cell}
	inner.children(n, style|ui.Underline)
	var label strings.Builder
	for _, s := range inner.out {
		label.WriteString(s.Text)
	}
	switch {
	case label.Len() == 0 && noLabel != "":
		inner.add(noLabel, style|ui.Underline)
	case label.Len() == 0 || label.String() == address:
		p.add(address, style|ui.Blue)
		return
	}
	p.out = append(p.out, inner.out...)
	p.add(" ("+address+")", style|ui.Blue)
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }

// unescape resolves escapes and character references, and <br> if breaks is set.
func unescape(s string, breaks bool) string {
	var b strings.Builder
	for {
		at := strings.IndexAny(s, `\&<`)
		if at < 0 || at == len(s)-1 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:at])
		s = s[at:]
		meant, n := s[:1], 1
		switch {
		case s[0] == '\\' && util.IsPunct(s[1]):
			meant, n = s[1:2], 2
		case s[0] == '&':
			meant, n = entity(s)
		case s[0] == '<' && breaks:
			meant, n = lineBreak(s)
		}
		b.WriteString(meant)
		s = s[n:]
	}
}

// maxEntity is the longest named character reference in HTML, with & and ;.
const maxEntity = 33

// entity parses &name; &#1; &#x1; and returns its length. A character that a
// terminal would interpret is shown as an escape.
func entity(s string) (meant string, n int) {
	end := strings.IndexByte(s[:min(len(s), maxEntity)], ';')
	if end < 2 || strings.ContainsAny(s[1:end], "& \n") {
		return "&", 1
	}
	meant = html.UnescapeString(s[:end+1])
	if meant == s[:end+1] {
		return "&", 1
	}
	return ui.Line(strings.ReplaceAll(meant, "\u00a0", " ")), end + 1
}

func lineBreak(s string) (meant string, n int) {
	for _, tag := range []string{"<br>", "<br/>", "<br />"} {
		if len(s) >= len(tag) && strings.EqualFold(s[:len(tag)], tag) {
			return "\n", len(tag)
		}
	}
	return "<", 1
}

func splitLines(spans []ui.Span) [][]ui.Span {
	out := [][]ui.Span{nil}
	for _, s := range spans {
		for i, part := range strings.Split(s.Text, "\n") {
			if i > 0 {
				out = append(out, nil)
			}
			if part != "" {
				out[len(out)-1] = append(out[len(out)-1], ui.Span{Text: part, Style: s.Style})
			}
		}
	}
	return out
}

func restyled(spans []ui.Span, add ui.Style) []ui.Span {
	for i := range spans {
		spans[i].Style |= add
	}
	return spans
}
