// Package text cuts text to a size without breaking a character, and takes
// single lines out of it. It is for what others wrote: names, messages, output.
// It also knows which characters are not seen; internal/terminal makes text safe
// to show by it.
package text

import (
	"strings"
	"unicode/utf8"
)

// Ellipsis marks where something was cut.
const Ellipsis = "…"

// Bytes is text in either form.
type Bytes interface{ ~string | ~[]byte }

// Head returns the first n bytes of s at most, without a character that the cut
// broke. What was invalid before stays so; see [Valid].
func Head[T Bytes](s T, n int) T {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)]
}

// Tail returns the last n bytes of s at most, without a character that the cut
// broke.
func Tail[T Bytes](s T, n int) T {
	if len(s) <= n {
		return s
	}
	start := len(s) - max(n, 0)
	for start < len(s) && !utf8.RuneStart(s[start]) {
		start++
	}
	return s[start:]
}

// Clip is Head with an ellipsis behind what was cut. The ellipsis is not counted
// in n.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Head(s, n) + Ellipsis
}

// ClipRunes is Clip with n counted in characters.
func ClipRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i] + Ellipsis
		}
	}
	return s
}

// WholeRunes splits off the start of a character at the end of b whose other
// bytes are still to come.
func WholeRunes(b []byte) (whole, rest []byte) {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if at := len(b) - i; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return b[:at], b[at:]
			}
			break
		}
	}
	return b, nil
}

// Valid returns s with each run of bytes that are no UTF-8 replaced by U+FFFD.
func Valid[T Bytes](s T) string { return strings.ToValidUTF8(string(s), "\uFFFD") }

// FirstLine returns s up to its first line break.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSuffix(line, "\r")
}

// FirstSentence returns the first sentence of a text, on one line: up to a full
// stop before a blank, or to an empty line.
func FirstSentence(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n\n")
	s = strings.Join(strings.Fields(s), " ")
	for at := 0; ; {
		i := strings.IndexAny(s[at:], ".!?。")
		if i < 0 {
			return s
		}
		_, n := utf8.DecodeRuneInString(s[at+i:])
		at += i + n
		if end := s[:at]; at == len(s) || n > 1 || s[at] == ' ' && !abbreviated(end) {
			return end
		}
	}
}

// abbreviated reports whether the full stop that s ends with is part of a word,
// as in "e.g." and "1.".
func abbreviated(s string) bool {
	word := s[strings.LastIndexByte(s, ' ')+1:]
	return strings.HasSuffix(s, ".") && (strings.Count(word, ".") > 1 || len(word) <= 2 || word == "etc." || word == "cf." || word == "vs." || word == "incl.")
}

// LastLine returns the last line of s that is not blank, without the white space
// around it; "" where there is none.
func LastLine(s string) string {
	s = strings.TrimSpace(s)
	return strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:])
}
