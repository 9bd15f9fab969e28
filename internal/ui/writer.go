package ui

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"

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
	whole := p
	if len(w.part) > 0 {
		whole = append(w.part, p...)
	}
	whole, part := text.WholeRunes(whole)
	w.part = slices.Clone(part)
	if firstHidden(whole) >= 0 {
		whole = []byte(Visible(string(whole)))
	}
	if len(whole) == 0 {
		return len(p), nil
	}
	if _, err := w.w.Write(whole); err != nil {
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

const (
	// longBlank is the minimum length of a run of blanks that is replaced by
	// its count, because it would push the rest of a line out of sight.
	longBlank = 64
	// longBreak is the same for empty lines.
	longBreak = 8
)

// Visible escapes text for output on several lines: newlines and tabs stay,
// every other control, bidirectional, zero-width or otherwise invisible
// character becomes an escape such as \x1b or \u202e, and so does each byte
// that is not valid UTF-8. Text without such characters is returned unchanged.
func Visible(s string) string {
	if isPlain(s, true) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	escapeInto(&b, s, true)
	return b.String()
}

// Line is Visible for one line: it also escapes newlines, tabs and carriage
// returns, and replaces a long run of blanks by its count, as in ␣×5000.
func Line(s string) string {
	if isPlain(s, false) && !strings.Contains(s, strings.Repeat(" ", longBlank)) {
		return s
	}
	var b strings.Builder
	escapeInto(&b, s, false)
	return countRuns(b.String())
}

// payload is Visible for text that a person has to approve: long runs of blanks
// and of empty lines are replaced by their count, so that they cannot hide text.
func payload(s string) string { return countRuns(Visible(s)) }

// isPlain reports whether s is printable ASCII, including line breaks and tabs
// if lines is set.
func isPlain(s string, lines bool) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && !(lines && (c == '\n' || c == '\t')) || c >= 0x7f {
			return false
		}
	}
	return true
}

func escapeInto(b *strings.Builder, s string, lines bool) {
	var prev rune // the character before; 0 if it is escaped
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		before := prev
		prev = 0
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(b, `\x%02x`, s[i])
		case lines && (r == '\n' || r == '\t'):
			b.WriteByte(byte(r))
		case text.Invisible(r) && !(r == emojiStyle && symbol(before)):
			b.WriteString(escape(r))
		default:
			b.WriteString(s[i : i+n])
			prev = r
		}
		i += n
	}
}

func escape(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// emojiStyle is variation selector 16. It is the one invisible character that
// is frequent in ordinary text; after a symbol it carries no information.
const emojiStyle = '\ufe0f'

func symbol(r rune) bool { return unicode.Is(unicode.So, r) || r >= 0x2190 && r <= 0x2bff }

// blank reports whether a character is shown as white space.
func blank(r rune) bool { return r == '\t' || unicode.Is(unicode.Zs, r) }

// countRuns replaces long runs of blanks and of line breaks by their count.
func countRuns(s string) string {
	if len(s) < longBreak {
		return s
	}
	var b strings.Builder
	runes := []rune(s)
	for i := 0; i < len(runes); {
		end, breaks := i, 0
		for end < len(runes) && (blank(runes[end]) || runes[end] == '\n') {
			if runes[end] == '\n' {
				breaks++
			}
			end++
		}
		switch {
		case breaks > longBreak:
			fmt.Fprintf(&b, "\n⏎×%d\n", breaks)
		case end > i && breaks == 0 && end-i >= longBlank:
			b.WriteString("␣×" + strconv.Itoa(end-i))
		case end > i:
			b.WriteString(blanksOfLines(string(runes[i:end])))
		default:
			b.WriteRune(runes[i])
			end++
		}
		i = end
	}
	return b.String()
}

// blanksOfLines counts the blanks of each line in a short run with line breaks.
func blanksOfLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if n := utf8.RuneCountInString(l); n >= longBlank {
			lines[i] = "␣×" + strconv.Itoa(n)
		}
	}
	return strings.Join(lines, "\n")
}

// styled measures text; the color sequences of [Paint] take no columns.
var styled = displaywidth.Options{ControlSequences: true}

// Width returns the number of columns of text on a screen.
func Width(s string) int {
	if isPlain(s, false) {
		return len(s)
	}
	return styled.String(s)
}

// Cut returns at most width columns of one line; if something was cut, the last
// one is "…". The text must have passed [Line], and may then have been painted.
func Cut(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if len(s) <= width {
		return s
	}
	return styled.TruncateString(s, width, "…")
}
