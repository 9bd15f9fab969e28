package ui

import (
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// Style is a combination of attributes and one color, joined by |. The zero
// value is plain.
type Style uint16

// The attributes and colors. Colors are the eight that every terminal theme
// defines.
const (
	Bold Style = 1 << iota
	Dim
	Italic
	Underline
	Reverse
	Struck
	Red
	Green
	Yellow
	Blue
	Magenta
	Cyan
)

// parameters returns the SGR parameters (ECMA-48, 8.3.117), such as "1;31".
func (s Style) parameters() string {
	var parts []string
	for i, code := range styleCodes()[1:] {
		if s&(1<<i) != 0 {
			parts = append(parts, code)
		}
	}
	return strings.Join(parts, ";")
}

// styleCodes returns all parameters that are ever written: the reset, then the
// attributes and colors.
func styleCodes() []string {
	return []string{"0", "1", "2", "3", "4", "7", "9", "31", "32", "33", "34", "35", "36"}
}

// Span is a part of a line in one style. The text must have passed [Visible] or
// [Line], because it is written unchanged.
type Span struct {
	Text  string
	Style Style
}

// Paint returns the spans as one text, with their styles if color is set.
// Styled text ends with a reset, so that its style does not affect what
// follows.
func Paint(spans []Span, color bool) string {
	var b strings.Builder
	var style Style
	for _, s := range spans {
		if s.Style != style && s.Text != "" && color {
			if style != 0 {
				b.WriteString("\x1b[0m")
			}
			if style = s.Style; style != 0 {
				b.WriteString("\x1b[" + style.parameters() + "m")
			}
		}
		b.WriteString(s.Text)
	}
	if style != 0 {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// SpansWidth returns the columns that the spans take on a screen.
func SpansWidth(spans []Span) int {
	n := 0
	for _, s := range spans {
		n += Width(s.Text)
	}
	return n
}

// SplitSpans splits a line after at most room columns, within a word if
// necessary but never within a character. head has at least one character.
func SplitSpans(spans []Span, room int) (head, rest []Span) {
	used := 0
	for i, s := range spans {
		n, columns := cutAt(s.Text, room-used)
		if n == len(s.Text) {
			used += columns
			continue
		}
		if n == 0 && used == 0 {
			n = firstCharacter(s.Text)
		}
		head = append(head, spans[:i]...)
		if n > 0 {
			head = append(head, Span{s.Text[:n], s.Style})
		}
		if n < len(s.Text) {
			rest = append(rest, Span{s.Text[n:], s.Style})
		}
		return head, append(rest, spans[i+1:]...)
	}
	return spans, nil
}

// cutAt returns how many bytes of text fit into room columns, and how many columns
// they take.
func cutAt(text string, room int) (at, columns int) {
	for at < len(text) {
		n := firstCharacter(text[at:])
		w := Width(text[at : at+n])
		if columns+w > room {
			break
		}
		columns += w
		at += n
	}
	return at, columns
}

// firstCharacter returns the length of the first user-perceived character (grapheme
// cluster), including combining marks and joined emoji.
func firstCharacter(text string) int {
	if len(text) == 1 || text[0] < utf8.RuneSelf && text[1] < utf8.RuneSelf {
		return 1
	}
	characters := displaywidth.StringGraphemes(text)
	characters.Next()
	return max(len(characters.Value()), 1)
}

// WrapSpans breaks a line between words so that each row has at most width
// columns. A longer word has its own row and is not broken, so that URLs stay
// whole; wide characters may be broken anywhere. Blanks at a break are dropped;
// others stay.
func WrapSpans(spans []Span, width int) [][]Span {
	if SpansWidth(spans) <= width {
		return [][]Span{spans}
	}
	w := wrapping{width: width}
	for _, s := range spans {
		for text := s.Text; text != ""; {
			n := wordLength(text)
			w.add(Span{text[:n], s.Style})
			text = text[n:]
		}
	}
	w.word()
	return append(w.rows, w.row)
}

// wordLength returns the length of the run of blanks, the wide character or the
// word at the beginning of text.
func wordLength(text string) int {
	if text[0] == ' ' {
		return len(text) - len(strings.TrimLeft(text, " "))
	}
	for at := 0; at < len(text); {
		n := firstCharacter(text[at:])
		switch wide := n > 1 && Width(text[at:at+n]) > 1; {
		case wide && at == 0:
			return n
		case wide || text[at] == ' ':
			return at
		}
		at += n
	}
	return len(text)
}

// wrapping builds rows. A word may have parts in several styles.
type wrapping struct {
	width, used, pending int // columns of a row, of the current row with blanks, of the pending parts
	rows                 [][]Span
	row, pieces          []Span
}

func (w *wrapping) add(s Span) {
	blank := s.Text[0] == ' '
	wide := len(s.Text) > 1 && Width(s.Text) > 1 && firstCharacter(s.Text) == len(s.Text)
	if blank || wide {
		w.word()
	}
	if blank {
		if n := len(s.Text); len(w.row) > 0 || len(w.rows) == 0 {
			w.row = append(w.row, s)
			w.used += n
		}
		return
	}
	w.pieces = append(w.pieces, s)
	w.pending += Width(s.Text)
	if wide {
		w.word()
	}
}

// word adds the pending parts to the row, or to a new one.
func (w *wrapping) word() {
	if len(w.pieces) == 0 {
		return
	}
	if w.used+w.pending > w.width && w.used > 0 {
		w.rows = append(w.rows, trimBlanks(w.row))
		w.row, w.used = nil, 0
	}
	w.row = append(w.row, w.pieces...)
	w.used += w.pending
	w.pieces, w.pending = nil, 0
}

func trimBlanks(row []Span) []Span {
	for len(row) > 0 && strings.TrimRight(row[len(row)-1].Text, " ") == "" {
		row = row[:len(row)-1]
	}
	return row
}
