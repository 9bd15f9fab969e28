package toolscan

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/lazy"
	"github.com/toolreg/toolreg/internal/text"
)

// manyInvisible is the number of invisible characters in a row that cannot be an accident.
const manyInvisible = 4

// characters reports invisible characters.
func (f *findings) characters(t string) {
	rtl := strings.ContainsFunc(t, func(r rune) bool {
		return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana, unicode.Nko)
	})
	var worst Severity
	row, start := 0, 0    // length of the current row, and where it begins
	first, last := -1, -1 // the worst row
	prev := rune(0)
	for i, r := range t {
		severity := Severity("")
		if i > 0 || r != '\ufeff' { // a byte order mark
			severity = invisible(t, i, r, prev, rtl)
		}
		prev = r
		if severity == "" {
			row = 0
			continue
		}
		if row++; row == 1 {
			start = i
		}
		switch {
		case row >= manyInvisible:
			severity = High
		case row > 1 && severity == Low:
			severity = Medium
		}
		if first < 0 || severity.rank() < worst.rank() {
			worst, first, last = severity, start, i
		}
	}
	if first < 0 {
		return
	}
	words := excerpt(t, first, last+1)
	if hidden := tagText(t[first:]); hidden != "" {
		words = "hidden text: " + hidden
	}
	f.addFinding("invisible-characters", worst, words)
}

// tagText returns the ASCII text that tag characters at the beginning of t encode.
func tagText(t string) string {
	var b strings.Builder
	for _, r := range t {
		if r < 0xe0020 || r > 0xe007e || b.Len() >= longest {
			break
		}
		b.WriteByte(byte(r - 0xe0000))
	}
	return b.String()
}

// invisible returns the severity of a character at an offset; "" for a visible character, and for
// one that its neighbors need.
func invisible(t string, at int, r, prev rune, rtl bool) Severity {
	if r == '\n' || r == '\t' || r == '\r' || !text.Invisible(r) {
		return ""
	}
	next, _ := utf8.DecodeRuneInString(t[at+utf8.RuneLen(r):])
	between := unicode.Is(unicode.Latin, prev) && unicode.Is(unicode.Latin, next)
	switch {
	case r == 0x1b, r == 0x9b, r == 0x202d, r == 0x202e: // escape sequences, overrides
		return High
	case r < ' ', r >= 0x7f && r <= 0x9f:
		return Medium
	case r >= 0x202a && r <= 0x202c, r >= 0x2066 && r <= 0x2069:
		if rtl {
			return ""
		}
		return High
	case r == 0x200e, r == 0x200f, r == 0x61c:
		if rtl {
			return ""
		}
		return Low
	case r >= 0xe0000 && r <= 0xe007f:
		if isFlag(t[max(0, at-flagBytes):at], t[at:]) {
			return ""
		}
		return High
	case r == 0x200d && (isEmoji(prev) || prev == 0xfe0f) && isEmoji(next), (r == 0x200c || r == 0x200d) && needsJoiners(prev):
		return ""
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef:
		switch {
		case isEmoji(prev), prev >= '0' && prev <= '9', prev == '#', prev == '*',
			unicode.Is(unicode.Han, prev), unicode.IsSymbol(prev), unicode.Is(unicode.Po, prev), needsJoiners(prev):
			return ""
		}
		return Medium
	case r >= 0x180b && r <= 0x180f && unicode.Is(unicode.Mongolian, prev),
		r == 0x200b && needsJoiners(prev), r == 0x2028, r == 0x2029, r == 0x34f && unicode.IsMark(next):
		return ""
	case between:
		if r == 0xad { // a soft hyphen
			return Low
		}
		return High
	}
	return Low
}

// flagBytes is the length of the flag of a region without its end.
const flagBytes = 4 + 6*4

// isFlag reports whether a tag character belongs to the flag of a region, which begins with
// a black flag and has at most six tags and an end.
func isFlag(before, from string) bool {
	flag := strings.LastIndex(before, "\U0001F3F4")
	if flag < 0 {
		return false
	}
	for _, r := range before[flag+4:] {
		if r < 0xe0030 || r > 0xe007a {
			return false
		}
	}
	n := 0
	for _, r := range from {
		switch {
		case r == 0xe007f:
			return true
		case r < 0xe0030 || r > 0xe007a || n > 6:
			return false
		}
		n++
	}
	return false
}

// isEmoji reports whether a character may be part of an emoji.
func isEmoji(r rune) bool {
	return r >= 0x1f000 && r <= 0x1faff || r >= 0x2190 && r <= 0x2bff || r >= 0x3030 && r <= 0x303d || r == 0x3297 ||
		r == 0x3299 || r == 0xa9 || r == 0xae || r == 0x203c || r == 0x2049 || r == 0x2122 || r == 0x2139
}

// needsJoiners reports whether a character belongs to a script whose words need joiners or are
// divided by them.
func needsJoiners(r rune) bool {
	return r >= 0x600 && r <= 0x109f && unicode.In(r, unicode.L, unicode.M) ||
		r >= 0x1780 && r <= 0x18af || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// mixed reports words in which letters of other alphabets stand for Latin ones.
func (f *findings) mixed(t string) {
	isName := len(f.path) == 1 && f.path[0] == "name"
	words, first, last := 0, 0, 0
	start, latin, other := -1, false, false
	end := func(i int) {
		if latin && other && i-start > minText {
			if words++; words == 1 {
				first, last = start, i
			}
		}
		start, latin, other = -1, false, false
	}
	for i, r := range t {
		if !unicode.IsLetter(r) {
			end(i)
			continue
		}
		if start < 0 {
			start = i
		}
		latin = latin || unicode.Is(unicode.Latin, r)
		other = other || lookalike(unicode.ToLower(r)) != unicode.ToLower(r) && !strings.ContainsRune("αρυνικτχε", r)
	}
	switch end(len(t)); {
	case words > 1 || words == 1 && isName:
		f.addFinding("mixed-alphabets", High, excerpt(t, first, last))
	case words == 1:
		f.addFinding("mixed-alphabets", Medium, excerpt(t, first, last))
	}
}

const (
	// farLines and farBlanks are the numbers of empty lines and of blanks after which text is out
	// of sight.
	farLines  = 12
	farBlanks = 80
)

// layout reports text that is far away from the rest.
func (f *findings) layout(t string) {
	blanks, lines, start := 0, 0, 0
	for i, r := range t {
		switch {
		case r == '\n':
			lines++
			blanks = 0
		case unicode.IsSpace(r):
			blanks++
		case r != 0x2800 && r != 0x3164 && text.Invisible(r):
		default:
			if start > 0 && (lines > farLines || blanks >= farBlanks) {
				f.addFinding("distant-text", High, excerpt(t, i, i+1))
				return
			}
			blanks, lines, start = 0, 0, i+1
		}
	}
}

// A markup is a mark that models read as the border of another speaker's text, or that
// renderers hide.
type markup struct {
	pattern  *lazy.Regexp
	severity Severity
}

var markups = []markup{
	{lazy.NewRegexp(`(?i)<\|\s*[a-z_]+\s*\|>|\[/?INST\]|<</?SYS>>|</?(system|hidden|secret|system[_-]?(prompt|message|instructions?)|admin)>`), High},
	{lazy.NewRegexp(`(?s)<!--.{3}`), Medium},
	{lazy.NewRegexp(`(?i)</?(important|critical|instructions?|assistant|user|mandatory)>|(^|\n|[.!]\s|[*\[({])#*\s*(system|assistant|hidden)( (note|message|prompt|override|instructions?))?\s*:`), Medium},
}

// markup reports markup that is meant for models.
func (f *findings) markup(t string) {
	if !strings.ContainsAny(t, "<[#:") {
		return
	}
	for _, m := range markups {
		if at := m.pattern.Get().FindStringIndex(t); at != nil {
			f.addFinding("model-markup", m.severity, excerpt(t, at[0], min(at[1], at[0]+before)))
		}
	}
}
