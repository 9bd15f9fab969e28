package markdown

import (
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/terminal"
)

type kind uint8

const (
	paragraph kind = iota
	heading
	rule
	code
	diff
	quote
	list
	item
	table
)

// block is one block of a document.
type block struct {
	kind     kind
	gap      bool     // a blank line stands before it
	lines    []string // paragraph, heading (one), code, diff, table
	children []block  // quote, list (items), item
	level    int      // of a heading; the first number of a list
	info     string   // code: its language; an ordered list: what follows numbers
	ordered  bool
	task     string // item: "x", " " or "" where it is no task
}

// maxDepth bounds nesting: deeper marks stay text.
const maxDepth = 12

// parse reads lines into blocks.
func parse(text []string, depth int) []block {
	p := &parser{text: text, depth: depth}
	for p.at < len(p.text) {
		if blank(p.text[p.at]) {
			p.at++
			p.gap = true
			continue
		}
		p.block()
	}
	return p.out
}

type parser struct {
	text  []string
	at    int // the line to read next
	depth int
	gap   bool
	out   []block
}

func blank(line string) bool { return strings.TrimLeft(line, " ") == "" }

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// add appends a block and takes its lines.
func (p *parser) add(b block, taken int) {
	b.gap = p.gap || b.kind == heading
	p.gap = false
	p.at += taken
	p.out = append(p.out, b)
}

// block reads the block that begins at a line that is not blank.
func (p *parser) block() {
	line := p.text[p.at]
	indent := indentOf(line)
	if indent >= 4 {
		p.indented()
		return
	}
	if n := terminal.DiffLength(p.text[p.at:]); n > 0 {
		p.add(block{kind: diff, lines: p.text[p.at : p.at+n]}, n)
		return
	}
	bare := line[indent:]
	if fence := fenceOf(bare); fence != "" {
		p.fenced(fence, indent)
		return
	}
	if level, text, ok := headingOf(bare); ok {
		p.add(block{kind: heading, level: level, lines: []string{text}}, 1)
		return
	}
	if isRule(bare) {
		p.add(block{kind: rule}, 1)
		return
	}
	if p.depth < maxDepth {
		if bare[0] == '>' {
			p.quote()
			return
		}
		if m, ok := markerOf(line); ok {
			p.list(m)
			return
		}
	}
	if n := tableLength(p.text[p.at:]); n > 0 {
		p.add(block{kind: table, lines: p.text[p.at : p.at+n]}, n)
		return
	}
	p.paragraph()
}

// paragraph reads to the next blank line or beginning of another block. One
// line underlined by = or - is a heading.
func (p *parser) paragraph() {
	end := p.at + 1
	for end < len(p.text) && !blank(p.text[end]) && !p.interrupts(end) {
		end++
	}
	if end == p.at+1 && end < len(p.text) {
		if level := underline(p.text[end]); level > 0 {
			p.add(block{kind: heading, level: level, lines: []string{strings.TrimSpace(p.text[p.at])}}, 2)
			return
		}
	}
	p.add(block{lines: append([]string(nil), p.text[p.at:end]...)}, end-p.at)
}

// interrupts reports whether another block begins within a paragraph.
func (p *parser) interrupts(at int) bool {
	line := p.text[at]
	indent := indentOf(line)
	if indent >= 4 {
		return false
	}
	bare := line[indent:]
	if _, _, ok := headingOf(bare); ok || fenceOf(bare) != "" || isRule(bare) || underline(line) > 0 && at == p.at+1 {
		return true
	}
	if terminal.DiffLength(p.text[at:]) > 0 || tableLength(p.text[at:]) > 0 {
		return true
	}
	if p.depth >= maxDepth {
		return false
	}
	m, ok := markerOf(line)
	return bare[0] == '>' || ok && (!m.ordered || m.number == 1) && m.content < len(line)
}

func (p *parser) indented() {
	end := p.at
	for i := p.at; i < len(p.text) && (blank(p.text[i]) || indentOf(p.text[i]) >= 4); i++ {
		if !blank(p.text[i]) {
			end = i + 1
		}
	}
	p.add(block{kind: code, lines: unindent(p.text[p.at:end], 4)}, end-p.at)
}

// unindent takes at most n blanks off every line.
func unindent(text []string, n int) []string {
	out := make([]string, len(text))
	for i, l := range text {
		out[i] = l[min(n, indentOf(l)):]
	}
	return out
}

// fenceOf returns the fence that opens a block of code.
func fenceOf(bare string) string {
	for _, c := range []string{"`", "~"} {
		n := len(bare) - len(strings.TrimLeft(bare, c))
		if n >= 3 && !(c == "`" && strings.Contains(bare[n:], "`")) {
			return bare[:n]
		}
	}
	return ""
}

func (p *parser) fenced(fence string, indent int) {
	info := strings.TrimSpace(p.text[p.at][indent+len(fence):])
	info, _, _ = strings.Cut(info, " ")
	end := p.at + 1
	for end < len(p.text) && !closes(p.text[end], fence) {
		end++
	}
	b := block{kind: code, info: strings.ToLower(info), lines: unindent(p.text[p.at+1:end], indent)}
	p.add(b, min(end+1, len(p.text))-p.at)
}

func closes(line, fence string) bool {
	bare := strings.TrimLeft(line, " ")
	return len(line)-len(bare) < 4 && len(bare) >= len(fence) && strings.Trim(bare, fence[:1]) == ""
}

func headingOf(bare string) (level int, text string, ok bool) {
	text = strings.TrimLeft(bare, "#")
	level = len(bare) - len(text)
	if level < 1 || level > 6 || text != "" && text[0] != ' ' {
		return 0, "", false
	}
	text = strings.TrimSpace(text)
	if cut := strings.TrimRight(text, "#"); cut == "" || strings.HasSuffix(cut, " ") {
		text = strings.TrimSpace(cut)
	}
	return level, text, true
}

func isRule(bare string) bool {
	marks := strings.ReplaceAll(bare, " ", "")
	return len(marks) >= 3 && strings.ContainsAny(marks[:1], "-_*") && strings.Trim(marks, marks[:1]) == ""
}

// underline returns the level of heading that a line makes of the one above.
func underline(line string) int {
	bare := strings.TrimSpace(line)
	switch {
	case len(bare) < 2 || indentOf(line) >= 4:
		return 0
	case strings.Trim(bare, "=") == "":
		return 1
	case strings.Trim(bare, "-") == "":
		return 2
	}
	return 0
}

func (p *parser) quote() {
	var inner []string
	for i := p.at; i < len(p.text); i++ {
		bare := strings.TrimLeft(p.text[i], " ")
		if !strings.HasPrefix(bare, ">") || indentOf(p.text[i]) >= 4 {
			break
		}
		inner = append(inner, strings.TrimPrefix(bare[1:], " "))
	}
	p.add(block{kind: quote, children: parse(inner, p.depth+1)}, len(inner))
}

// marker opens a list item.
type marker struct {
	ordered bool
	number  int
	sign    string // - + * . )
	content int    // column at which the item's text begins
}

func markerOf(line string) (marker, bool) {
	indent := indentOf(line)
	bare := line[indent:]
	digits := 0
	for digits < len(bare) && digits < 10 && bare[digits] >= '0' && bare[digits] <= '9' {
		digits++
	}
	if digits == 10 || digits >= len(bare) {
		return marker{}, false
	}
	m := marker{ordered: digits > 0, sign: bare[digits : digits+1]}
	signs := "-+*"
	if m.ordered {
		signs = ".)"
		m.number, _ = strconv.Atoi(bare[:digits])
	}
	if !strings.Contains(signs, m.sign) {
		return marker{}, false
	}
	rest := bare[digits+1:]
	blanks := indentOf(rest)
	switch {
	case rest == "":
		blanks = 1
	case blanks == 0:
		return marker{}, false
	case blanks > 4: // the item begins with indented code
		blanks = 1
	}
	m.content = indent + digits + 1 + blanks
	return m, true
}

// list reads items of one kind, with everything indented below them.
func (p *parser) list(first marker) {
	b := block{kind: list, ordered: first.ordered, level: first.number, info: first.sign}
	start := p.at
	at, gap := p.at, false
	for at < len(p.text) {
		m, ok := markerOf(p.text[at])
		if !ok || m.ordered != first.ordered || m.sign != first.sign || indentOf(p.text[at]) >= 4 || isRule(strings.TrimLeft(p.text[at], " ")) {
			break
		}
		end := at + 1
		for last := end; last < len(p.text) && (blank(p.text[last]) || indentOf(p.text[last]) >= m.content); last++ {
			if !blank(p.text[last]) {
				end = last + 1
			}
		}
		b.children = append(b.children, newItem(p.text[at:end], m, gap, p.depth))
		p.at = end
		for at, gap = end, false; at < len(p.text) && blank(p.text[at]); at++ {
			gap = true
		}
	}
	end := p.at
	p.at = start
	p.add(b, end-start)
}

func newItem(text []string, m marker, gap bool, depth int) block {
	inner := unindent(text, m.content)
	inner[0] = ""
	if len(text[0]) > m.content {
		inner[0] = text[0][m.content:]
	}
	b := block{kind: item, gap: gap}
	if t := inner[0]; len(t) > 4 && t[0] == '[' && t[2] == ']' && t[3] == ' ' && strings.ContainsAny(t[1:2], " xX") {
		b.task, inner[0] = strings.ToLower(t[1:2]), t[4:]
	}
	b.children = parse(inner, depth+1)
	return b
}
