// Package text shortens text without splitting a character, and extracts single
// lines. It is for untrusted text: names, messages, output. It also defines which
// characters are invisible, for package ui, which makes text safe to show.
package text

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolreg/toolreg/internal/lazy"
)

// Ellipsis shows where something was cut.
const Ellipsis = "…"

// Bytes is the constraint for text, as a string or as bytes.
type Bytes interface{ ~string | ~[]byte }

// byteOrderMark is U+FEFF, with which programs on Windows begin text in UTF-8.
const byteOrderMark = "\ufeff"

// WithoutMark returns s without a byte order mark at its beginning.
func WithoutMark[T Bytes](s T) T {
	if strings.HasPrefix(string(s[:min(len(s), len(byteOrderMark))]), byteOrderMark) {
		return s[len(byteOrderMark):]
	}
	return s
}

var xmlEncoding = lazy.NewRegexp(`^<\?xml\s[^>]*\bencoding\s*=\s*["']([\w.-]+)`)

// XMLEncoding returns the encoding that an XML declaration at the beginning of s names, or "" if s is UTF-8 anyway.
func XMLEncoding(s []byte) string {
	name := xmlEncoding.Get().FindSubmatch(s[:min(len(s), 1024)])
	if name == nil || utf8.Valid(s) {
		return ""
	}
	return string(name[1])
}

// Head returns at most the first n bytes of s, without a split character.
// Invalid bytes are kept; see [Valid].
func Head[T Bytes](s T, n int) T {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)]
}

// Tail returns at most the last n bytes of s, without a split character.
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

// Clip is Head with an ellipsis if something was cut. n does not include the
// ellipsis.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Head(s, n) + Ellipsis
}

// ClipRunes is Clip with n in characters.
func ClipRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i] + Ellipsis
		}
	}
	return s
}

// WholeRunes splits off an incomplete character at the end of b.
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

// Valid replaces each run of invalid UTF-8 bytes in s with U+FFFD.
func Valid[T Bytes](s T) string { return strings.ToValidUTF8(string(s), "\uFFFD") }

// AppendNew appends the values that a list does not have yet.
func AppendNew[T comparable](list []T, values ...T) []T {
	for _, v := range values {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// Typo reports whether two texts differ by one typing mistake: edited means that one byte is
// missing or another, swapped that two neighboring ones have changed places.
func Typo(a, b string) (edited, swapped bool) {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch {
	case len(a)+1 == len(b):
		return a[i:] == b[i+1:], false
	case len(a) != len(b) || i == len(a):
		return false, false
	case a[i+1:] == b[i+1:]:
		return true, false
	}
	return false, a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// Count returns a number with its noun: "1 file", "2 files".
func Count(n int, noun string) string { return strconv.Itoa(n) + " " + Plural(n, noun) }

// Plural returns the form of a noun that stands behind a number: "file" behind 1, otherwise "files".
func Plural(n int, noun string) string {
	switch {
	case n == 1:
		return noun
	case strings.HasSuffix(noun, "y"):
		return noun[:len(noun)-1] + "ies"
	case strings.HasSuffix(noun, "ch"), strings.HasSuffix(noun, "s"):
		return noun + "es"
	}
	return noun + "s"
}

// FirstLine returns s up to its first line break.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSuffix(line, "\r")
}

// FirstSentence returns the first sentence of a text, on one line: up to a
// period before a blank, or to an empty line.
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

// abbreviated reports whether the period at the end of s is part of a word, as
// in "e.g." and "1.".
func abbreviated(s string) bool {
	word := s[strings.LastIndexByte(s, ' ')+1:]
	return strings.HasSuffix(s, ".") && (strings.Count(word, ".") > 1 || len(word) <= 2 ||
		word == "etc." || word == "cf." || word == "vs." || word == "incl.")
}

// LastLine returns the last line of s that is not blank, trimmed; "" if there
// is none.
func LastLine(s string) string {
	s = strings.TrimSpace(s)
	return strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:])
}

// MatchName reports whether a name matches a pattern with *, ?, [...] and
// {a,b}. A malformed pattern matches only itself.
func MatchName(pattern, name string) bool {
	if pattern == name {
		return true
	}
	if !IsGlob(pattern) {
		return false
	}
	// In names of servers, a slash is an ordinary character.
	ok, err := doublestar.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return err == nil && ok
}

// MatchNameFold is [MatchName], but ignores what [Folded] does.
func MatchNameFold(pattern, name string) bool {
	if MatchName(strings.ToLower(pattern), strings.ToLower(name)) {
		return true
	}
	// Folding may change the number of characters, which matters to a pattern with ?.
	return !(isASCII(pattern) && isASCII(name)) && MatchName(Folded(pattern), Folded(name))
}

// IsPattern reports whether a pattern for [MatchName] is well formed.
func IsPattern(pattern string) bool { return doublestar.ValidatePattern(pattern) }

// IsGlob reports whether a name is a pattern for [MatchName].
func IsGlob(name string) bool {
	for i := range len(name) {
		switch name[i] {
		case '*', '?', '[', '{':
			return true
		}
	}
	return false
}

const (
	// maxQuoted and maxEscaped are the maximum numbers of bytes of a text that are shown.
	maxQuoted  = 200
	maxEscaped = 1000
)

// Quote returns at most the first 200 bytes of an untrusted word or line in double
// quotes, with invisible characters escaped.
func Quote(s string) string { return strconv.Quote(Valid(Clip(s, maxQuoted))) }

// Escape returns at most the first 1,000 bytes of a message that contains untrusted
// text, with invisible characters escaped. Double quotes are unchanged.
func Escape(s string) string {
	q := strconv.Quote(Valid(Head(s, maxEscaped)))
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// Cause removes the operation and the path from an error of package os, for messages that
// contain the path as the reader wrote it.
func Cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}

// plainWord has the characters that need no quoting in any shell.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-@/:,+%"

// Plain returns s with _ in place of each character that is not an ASCII letter or digit, or in also.
func Plain(s, also string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(also, r) {
			return r
		}
		return '_'
	}, s)
}

// ShellWord quotes a word for a shell. In k=v only the value is quoted.
func ShellWord(word string) string {
	special := func(r rune) bool { return !strings.ContainsRune(plainWord, r) }
	key, value, found := strings.Cut(word, "=")
	switch {
	case !strings.ContainsFunc(word, special) && word != "":
		return word
	case found && key != "" && !strings.ContainsFunc(key, special):
		if !strings.ContainsFunc(value, special) {
			return word
		}
		return key + "=" + singleQuoted(value)
	}
	return singleQuoted(word)
}

func singleQuoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
