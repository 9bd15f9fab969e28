package ui

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/text"
)

// Writer escapes the characters that [Visible] escapes. All text for a terminal or a
// stream of lines is written with it; text that is already safe is unchanged. It is
// safe for concurrent use. Create it with [NewWriter].
type Writer struct {
	w io.Writer

	mu   sync.Mutex
	part []byte // an incomplete character
}

// NewWriter returns a Writer to w. It returns the errors of w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes untrusted text. A character may be split between two writes.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := p
	if len(w.part) > 0 {
		text = append(w.part, p...)
		w.part = nil
	}
	if n := partAtEnd(text); n > 0 {
		w.part = slices.Clone(text[len(text)-n:])
		text = text[:len(text)-n]
	}
	if firstHidden(text) >= 0 {
		text = []byte(Visible(string(text)))
	}
	if len(text) == 0 {
		return len(p), nil
	}
	if _, err := w.w.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteStyled writes text from [Paint]. It is like Write but keeps the styles.
func (w *Writer) WriteStyled(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := io.WriteString(w.w, Styled(text))
	return err
}

// Unescaped returns the underlying writer, for output that is not text: the
// bytes of a result in a pipe, or images that we draw ourselves.
func (w *Writer) Unescaped() io.Writer { return w.w }

// Flush writes an incomplete character, escaped.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.part) == 0 { // do not wait for a write that waits for its reader
		return nil
	}
	text := Visible(string(w.part))
	w.part = nil
	_, err := io.WriteString(w.w, text)
	return err
}

// firstHidden returns the offset of the first byte that Visible may escape; -1
// if there is none.
func firstHidden(p []byte) int {
	if i := text.FirstInvisible(p); i >= 0 {
		return i
	}
	return bytes.IndexByte(p, '\r') // legal in JSON
}

// partAtEnd returns the length of an incomplete character at the end of p.
func partAtEnd(p []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(p)); n++ {
		if c := p[len(p)-n]; utf8.RuneStart(c) {
			if utf8.FullRune(p[len(p)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

// EndLine ends the last line of a text unless it is empty.
func EndLine(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// Styled is Visible for text with styles of [Paint]: these are kept, and any
// other escape sequence is made visible.
func Styled(text string) string {
	if !strings.Contains(text, styleStart) {
		return Visible(text)
	}
	var b strings.Builder
	plain := 0 // start of the text not yet written
	for at := 0; at < len(text); {
		n := styleLength(text[at:])
		if n == 0 {
			at++
			continue
		}
		b.WriteString(Visible(text[plain:at]))
		b.WriteString(text[at : at+n])
		at += n
		plain = at
	}
	b.WriteString(Visible(text[plain:]))
	return b.String()
}

const styleStart = "\x1b["

// styleLength returns the length of the style of Paint at the beginning of text; 0
// if there is none.
func styleLength(text string) int {
	rest, ok := strings.CutPrefix(text, styleStart)
	if !ok {
		return 0
	}
	codes, _, ok := strings.Cut(rest[:min(len(rest), longestStyle)], "m")
	if !ok {
		return 0
	}
	for code := range strings.SplitSeq(codes, ";") {
		if !slices.Contains(styleCodes(), code) {
			return 0
		}
	}
	return len(styleStart) + len(codes) + 1
}

// longestStyle is the maximum length of a style's parameters.
const longestStyle = 32
