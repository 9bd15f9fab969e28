package terminal

import (
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/text"
)

// Writer is the way of all text to a terminal or to a stream of lines: whatever
// [Visible] escapes arrives escaped. Text that was made safe before passes
// unchanged. It is safe for concurrent use. The zero value is of no use; make it
// with [NewWriter].
type Writer struct {
	w io.Writer

	mu   sync.Mutex
	part []byte // of a character whose rest is still to come
}

// NewWriter returns a writer to w, whose errors it returns.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes text that anybody may have made. A character may be in two writes.
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

// WriteStyled writes text that [Paint] has painted: as Write, but its styles stay.
func (w *Writer) WriteStyled(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := io.WriteString(w.w, Styled(text))
	return err
}

// Unescaped is the writer behind, for what is no text: the bytes of a result in a
// pipe, the pictures that we draw ourselves.
func (w *Writer) Unescaped() io.Writer { return w.w }

// Flush writes a character that was never completed, escaped.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := Visible(string(w.part))
	w.part = nil
	_, err := io.WriteString(w.w, text)
	return err
}

// firstHidden returns the offset of what Visible would escape at the earliest,
// -1 where that is nothing.
func firstHidden(p []byte) int {
	if i := text.FirstInvisible(p); i >= 0 {
		return i
	}
	return slices.Index(p, '\r') // legal in JSON
}

// partAtEnd returns the length of a character at the end of p that further bytes
// could complete.
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

// Styled is Visible for text that holds styles of [Paint]: these stay, any other
// escape sequence is shown.
func Styled(text string) string {
	if !strings.Contains(text, styleStart) {
		return Visible(text)
	}
	var b strings.Builder
	plain := 0 // where the text begins that is not written yet
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

// styleLength returns the length of the style that text begins with, 0 where it
// begins with none of Paint's.
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

// longestStyle is the length of the parameters of a style that has all of them.
const longestStyle = 32
