package toolsearch

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"

	"github.com/toolreg/toolreg/internal/text"
)

// maxWord is the length in bytes at which a word is cut: longer ones are identifiers or
// data, which are not typed in queries.
const maxWord = 64

// kind is the way in which a character affects the word that contains it.
type kind uint8

const (
	separator kind = iota // not a letter
	lower                 // a lower-case letter, or one without case
	upper                 // an upper-case letter
	digit                 // a digit or a mark
	single                // a word of one character
)

func kindOf(r rune) kind {
	switch {
	case 'a' <= r && r <= 'z':
		return lower
	case 'A' <= r && r <= 'Z':
		return upper
	case '0' <= r && r <= '9':
		return digit
	case r < utf8.RuneSelf:
		return separator
	case isUnspaced(r):
		return single
	case unicode.IsUpper(r):
		return upper
	case unicode.IsLetter(r):
		return lower
	case unicode.IsDigit(r), unicode.IsMark(r):
		return digit
	}
	return separator
}

// eachWord calls f with each word of s as written: runs of letters and
// digits, split where the case changes (readFile, HTMLPage). In scripts without
// spaces between words, each character is a word.
func eachWord(s string, f func(string)) {
	s = text.Composed(s)
	start, last := -1, separator // start of the word, -1 if none has begun
	before := 0                  // start of the last letter
	for i, r := range s {
		k := kindOf(r)
		if start >= 0 {
			from := i
			if k == lower && last == upper {
				from = before // The last of several capitals begins the next word: HTML, Page.
			}
			if k == separator || k == single || k == upper && last == lower || from < i && from > start {
				f(s[start:from])
				start = from
			}
		}
		switch {
		case k == separator:
			start = -1
		case k == single:
			f(s[i : i+utf8.RuneLen(r)])
			start = -1
		case start < 0:
			start = i
		}
		last, before = k, i
	}
	if start >= 0 {
		f(s[start:])
	}
}

// folded returns a word in lower case and without accents, which many people do not type, cut to the maximum
// length.
func folded(word string) string {
	word = text.Folded(text.Head(word, maxWord))
	if strings.IndexFunc(word, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return word
	}
	letters := strings.Map(func(r rune) rune {
		if '\u0300' <= r && r <= '\u036f' { // accents apart from their letters
			return -1
		}
		return r
	}, norm.NFD.String(word))
	return cmp.Or(text.Composed(letters), word)
}

// isUnspaced reports whether a letter belongs to a script without spaces between words, or
// in which words are written together with what follows them.
func isUnspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// stem returns the common part of a word's forms.
func stem(word string) string {
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf || word[i] <= '9' {
			return word // not an English word
		}
	}
	return english.Stem(word, true)
}

// stems returns the stems of the words of a text without duplicates.
func stems(text string) (out []string) {
	eachWord(text, func(word string) {
		if s := stem(folded(word)); !slices.Contains(out, s) {
			out = append(out, s)
		}
	})
	return out
}

// oneTypo reports whether two words, which are not empty, differ by one typing mistake.
// The first letter must match, because it is rarely wrong, and otherwise slack would
// match black.
func oneTypo(a, b string) bool {
	edited, swapped := text.Typo(a, b)
	return (edited || swapped) && a[0] == b[0]
}

// isStopWord reports whether a word says nothing about what a tool does.
func isStopWord(word string) bool {
	switch word {
	case "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
		"could", "do", "does", "for", "from", "has", "have", "how", "i", "if", "in", "into",
		"is", "it", "its", "may", "me", "my", "need", "of", "on", "or", "our", "please", "should", "so",
		"some", "that", "the", "their", "them", "then", "there", "these", "they", "this",
		"to", "tool", "tools", "up", "us", "use", "used", "using", "want", "was", "we", "what", "when",
		"where", "which", "who", "will", "with", "would", "you", "your":
		return true
	}
	return false
}
