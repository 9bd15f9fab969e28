package markdown

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/terminal"
)

// inline reads emphasis, code spans and links. Without color the text keeps its
// marks, but for links and escapes, which are spelled out.
func inline(text string, color bool) []terminal.Span { return inlineWithin(text, color, 0) }

// oneLine is inline for text that must stay on one line.
func oneLine(text string, color bool) []terminal.Span {
	spans := inline(text, color)
	for i := range spans {
		spans[i].Text = strings.ReplaceAll(spans[i].Text, "\n", " ")
	}
	return spans
}

// maxLinks bounds how deep links are looked for in the texts of links: an image
// may be the text of one.
const maxLinks = 2

func inlineWithin(text string, color bool, depth int) []terminal.Span {
	p := inlineParser{text: text, color: color, depth: depth}
	if depth < maxLinks {
		p.brackets()
	}
	for p.at < len(p.text) {
		p.next()
	}
	p.flush()
	if color {
		p.emphasis()
	}
	return p.spans()
}

// piece is a run of text in one style, or a run of marks that may open or close
// emphasis.
type piece struct {
	text        string
	style       terminal.Style
	mark        byte // * _ ~, 0 for text
	left        int  // marks that are not used up
	opens, ends bool
	on, off     [3]int // emphasis, strong, struck that begin and end behind this piece
}

type inlineParser struct {
	text   string
	color  bool
	at     int
	depth  int             // of links around the text
	plain  strings.Builder // text that is not in pieces yet
	pieces []piece
	pairs  map[int]int // of brackets, from the opening one to the closing one
	ticks  map[int]int // last offset of a run of backticks, by its length
}

// brackets finds the pairs of square brackets outside escapes.
func (p *inlineParser) brackets() {
	if !strings.Contains(p.text, "](") {
		return
	}
	p.pairs = map[int]int{}
	var open []int
	for i := 0; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case '[':
			open = append(open, i)
		case ']':
			if n := len(open); n > 0 {
				p.pairs[open[n-1]] = i
				open = open[:n-1]
			}
		}
	}
}

func (p *inlineParser) next() {
	switch c := p.text[p.at]; c {
	case '\\':
		p.escaped()
	case '`':
		p.code()
	case '*', '_', '~':
		p.marks(c)
	case '[':
		p.link(p.at)
	case '!':
		if strings.HasPrefix(p.text[p.at:], "![") {
			p.link(p.at + 1)
			return
		}
		p.take(1)
	case '<':
		p.angle()
	case '&':
		p.entity()
	default:
		n := strings.IndexAny(p.text[p.at:], "\\`*_~[!<&")
		if n < 0 {
			n = len(p.text) - p.at
		}
		p.take(n)
	}
}

// take moves n bytes as they are.
func (p *inlineParser) take(n int) {
	p.plain.WriteString(p.text[p.at : p.at+n])
	p.at += n
}

func (p *inlineParser) flush() {
	if p.plain.Len() > 0 {
		p.pieces = append(p.pieces, piece{text: p.plain.String()})
		p.plain.Reset()
	}
}

func (p *inlineParser) add(text string, style terminal.Style) {
	p.flush()
	p.pieces = append(p.pieces, piece{text: text, style: style})
}

func punctuation(c byte) bool {
	return c < utf8.RuneSelf && (unicode.IsPunct(rune(c)) || unicode.IsSymbol(rune(c)))
}

// escaped takes a backslash off an ASCII mark, and one at the end of a line.
func (p *inlineParser) escaped() {
	rest := p.text[p.at+1:]
	switch {
	case rest != "" && rest[0] == '\n':
		p.at++
	case rest != "" && punctuation(rest[0]):
		p.at++
		p.take(1)
	default:
		p.take(1)
	}
}

// code reads a code span: to the next run of as many backticks.
func (p *inlineParser) code() {
	n := runLength(p.text[p.at:], '`')
	if p.ticks == nil {
		p.ticks = map[int]int{}
		for i := p.at; i < len(p.text); i++ {
			if p.text[i] == '`' {
				n := runLength(p.text[i:], '`')
				p.ticks[n] = i
				i += n
			}
		}
	}
	if p.ticks[n] <= p.at { // no such run follows
		p.take(n)
		return
	}
	start := p.at + n
	end := start
	for {
		end += strings.IndexByte(p.text[end:], '`')
		length := runLength(p.text[end:], '`')
		if length == n {
			break
		}
		end += length
	}
	content := p.text[start:end]
	if len(content) > 2 && content[0] == ' ' && content[len(content)-1] == ' ' && strings.Trim(content, " ") != "" {
		content = content[1 : len(content)-1]
	}
	if p.color {
		p.add(content, terminal.Cyan)
	} else {
		p.add(p.text[p.at:end+n], 0)
	}
	p.at = end + n
}

func runLength(text string, c byte) int {
	n := 0
	for n < len(text) && text[n] == c {
		n++
	}
	return n
}

// marks reads a run of marks and tells on which sides it may stand (CommonMark
// 6.2).
func (p *inlineParser) marks(c byte) {
	n := runLength(p.text[p.at:], c)
	before, _ := utf8.DecodeLastRuneInString(p.text[:p.at])
	after, _ := utf8.DecodeRuneInString(p.text[p.at+n:])
	if p.at == 0 {
		before = ' '
	}
	if p.at+n == len(p.text) {
		after = ' '
	}
	opens := !unicode.IsSpace(after) && (!isMark(after) || unicode.IsSpace(before) || isMark(before))
	ends := !unicode.IsSpace(before) && (!isMark(before) || unicode.IsSpace(after) || isMark(after))
	if c == '_' {
		opens, ends = opens && (!ends || isMark(before)), ends && (!opens || isMark(after))
	}
	if c == '~' && n != 2 {
		opens, ends = false, false
	}
	p.flush()
	p.pieces = append(p.pieces, piece{text: p.text[p.at : p.at+n], mark: c, left: n, opens: opens, ends: ends})
	p.at += n
}

func isMark(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }

// angle reads <https://…> and <br>; other tags are text.
func (p *inlineParser) angle() {
	rest := p.text[p.at:]
	if len(rest) > maxAddress {
		rest = rest[:maxAddress]
	}
	end := 1 + strings.IndexAny(rest[1:], "<> \n")
	tag := ""
	if end > 0 && rest[end] == '>' {
		tag = rest[1:end]
	}
	scheme, _, ok := strings.Cut(tag, ":")
	switch {
	case strings.EqualFold(tag, "br") || strings.EqualFold(tag, "br/"):
		p.plain.WriteByte('\n')
		p.at += end + 1
	case ok && len(scheme) > 1 && strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+.-") == "":
		p.add(tag, terminal.Blue)
		p.at += end + 1
	default:
		p.take(1)
	}
}

// maxEntity is the longest name of a character in HTML, with & and ;.
const maxEntity = 33

// entity reads &name; &#1; &#x1;. A character that a terminal acts on is shown
// as its escape.
func (p *inlineParser) entity() {
	rest := p.text[p.at:min(len(p.text), p.at+maxEntity)]
	end := strings.IndexByte(rest, ';')
	if end < 2 || strings.ContainsAny(rest[1:end], "& \n") {
		p.take(1)
		return
	}
	text := html.UnescapeString(rest[:end+1])
	if text == rest[:end+1] {
		p.take(1)
		return
	}
	p.plain.WriteString(terminal.Line(strings.ReplaceAll(text, "\u00a0", " ")))
	p.at += end + 1
}
