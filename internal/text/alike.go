package text

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Composed returns a text in Unicode's normalization form C. Systems and editors
// write the same name or word in different forms: "é" is one character, or e and
// an accent.
func Composed(s string) string { return norm.NFC.String(s) }

// Alike returns the form that texts share if they cannot be told apart, or only
// with effort, when they are read: composed, with ASCII in place of typographic
// quotes, dashes and spaces, full-width characters, and Cyrillic and Greek letters
// with the shape of Latin ones, and without characters that have no width.
func Alike(s string) string {
	if isASCII(s) {
		return s
	}
	return NewAlikeText(s).Text
}

// Folded returns the form that names share if a file system that ignores case takes them for the
// same, as that of macOS does: in lower case and composed, with ligatures and variants of letters
// replaced by the letters. No character with a meaning in paths and globs appears by it.
func Folded(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for _, r := range norm.NFC.String(s) {
		letters := string(r)
		if r >= utf8.RuneSelf {
			if plain := norm.NFKC.String(letters); !strings.ContainsFunc(plain, notLetter) {
				letters = plain
			}
		}
		b.WriteString(strings.ToLower(letters))
	}
	return norm.NFC.String(strings.NewReplacer("ß", "ss", "ς", "σ").Replace(b.String()))
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }

// LookSame reports whether two different texts look the same.
func LookSame(a, b string) bool { return a != b && Alike(a) == Alike(b) }

// AlikeText is the form of [Alike] of a text with the positions in that text.
type AlikeText struct {
	Text  string
	steps []step // in order; without steps the form is the text itself
}

// step is an offset in the form from which offsets in the text are larger by a number.
type step struct{ from, by int }

// NewAlikeText returns the form of a text.
func NewAlikeText(s string) AlikeText {
	if isASCII(s) {
		return AlikeText{Text: s}
	}
	var a AlikeText
	var b strings.Builder
	b.Grow(len(s))
	by := 0
	for at := 0; at < len(s); {
		n := asciiRun(s[at:])
		if n > 0 {
			b.WriteString(s[at : at+n])
			at += n
			continue
		}
		n = norm.NFC.NextBoundaryInString(s[at:], true)
		if n <= 0 {
			n = len(s) - at
		}
		for _, r := range norm.NFC.String(s[at : at+n]) {
			writeAlike(&b, r)
		}
		at += n
		if at-b.Len() != by {
			by = at - b.Len()
			a.steps = append(a.steps, step{b.Len(), by})
		}
	}
	a.Text = b.String()
	return a
}

// Offset converts an offset in the form to one in the text. An offset inside the form
// of one character has no such place; the result is then inside or after that character,
// and so never beyond the text, although the form of a character can be longer than it.
func (a AlikeText) Offset(pos int) int {
	i, _ := slices.BinarySearchFunc(a.steps, pos+1, func(s step, pos int) int { return s.from - pos })
	out := pos
	if i > 0 {
		out += a.steps[i-1].by
	}
	if i < len(a.steps) {
		out = min(out, a.steps[i].from+a.steps[i].by)
	}
	return out
}

// asciiRun returns the length of the ASCII at the start of s that no later character
// combines with.
func asciiRun(s string) int {
	n := 0
	for n < len(s) && s[n] < utf8.RuneSelf {
		n++
	}
	if n > 0 && n < len(s) {
		n-- // an accent may follow
		if n == 0 && norm.NFC.NextBoundaryInString(s, true) == 1 {
			n = 1
		}
	}
	return n
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// letters of other scripts, and the Latin letters that have their shape.
const (
	otherLetters = "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅοΑΒΕΖΗΙΚΜΝΟΡΤΥΧν"
	latinLetters = "aeopcyxijshdqwABEKMHOPCTYXIJSoABEZHIKMNOPTYXv"
)

func writeAlike(b *strings.Builder, r rune) {
	switch {
	case r < utf8.RuneSelf:
		b.WriteByte(byte(r))
	case r >= 0x2010 && r <= 0x2015, r == 0x2212, r == 0xfe58, r == 0xfe63:
		b.WriteByte('-')
	case r >= 0x2018 && r <= 0x201b, r == 0x2032, r == 0x02bc, r == 0x00b4:
		b.WriteByte('\'')
	case r >= 0x201c && r <= 0x201f, r == 0x2033:
		b.WriteByte('"')
	case r == 0x2026:
		b.WriteString("...")
	case r >= 0xff01 && r <= 0xff5e:
		b.WriteByte(byte(r - 0xff01 + '!'))
	case unicode.Is(unicode.Zs, r):
		b.WriteByte(' ')
	case Invisible(r) && r > 0x9f && r != 0x2028 && r != 0x2029 && !unicode.Is(unicode.Co, r):
	default:
		if i := strings.IndexRune(otherLetters, r); i >= 0 {
			b.WriteByte(latinLetters[i/2]) // each of the others has two bytes
			return
		}
		b.WriteRune(r)
	}
}
