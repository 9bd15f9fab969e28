package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
)

// maxWord is the length in bytes beyond which a word is cut: what is longer is an
// identifier or data, and nobody types it.
const maxWord = 64

// eachWord calls f with each word of text, in lower case: runs of letters and
// digits, divided where the case changes (readFile, HTMLPage). Of scripts that put
// no spaces between words each character is a word.
func eachWord(text string, f func(string)) {
	start := -1 // of the word, -1 where none has begun
	end := func(i int) {
		if start >= 0 {
			f(lower(text[start:i]))
		}
		start = -1
	}
	var last rune
	for i, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			end(i)
		case r >= utf8.RuneSelf && isUnspaced(r):
			end(i)
			f(string(r))
		case start < 0:
			start = i
		case unicode.IsUpper(r) && !unicode.IsUpper(last) && unicode.IsLetter(last):
			end(i)
			start = i
		case unicode.IsLower(r) && unicode.IsUpper(last):
			// The last capital of several begins the next word: HTML, Page.
			if before := i - utf8.RuneLen(last); before > start {
				end(before)
				start = before
			}
		}
		last = r
	}
	end(len(text))
}

func lower(word string) string {
	if len(word) > maxWord {
		word = strings.ToValidUTF8(word[:maxWord], "")
	}
	return strings.ToLower(word)
}

// isUnspaced reports whether a letter is of a script that is written without
// spaces between words.
func isUnspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// stem returns what the forms of a word share.
func stem(word string) string {
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf || word[i] <= '9' {
			return word // no English word
		}
	}
	return english.Stem(word, true)
}

// stems returns the stems of the words of a text, each once.
func stems(text string) (out []string) {
	eachWord(text, func(word string) {
		if s := stem(word); !slices.Contains(out, s) {
			out = append(out, s)
		}
	})
	return out
}

// oneTypo reports whether two words differ by a letter that is missing, wrong or
// in its neighbor's place.
func oneTypo(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if i+1 >= len(a) || a[i+1:] == b[i+1:] {
		return true
	}
	return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// isStopWord reports whether a word says nothing about what a tool does.
func isStopWord(word string) bool {
	switch word {
	case "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "do", "does", "for", "from", "has", "have", "how", "i", "if", "in", "into",
		"is", "it", "its", "may", "me", "my", "need", "of", "on", "or", "our", "please", "should", "so", "some", "that", "the", "their", "them", "then", "there", "these", "they", "this",
		"to", "tool", "tools", "up", "us", "use", "used", "using", "want", "was", "we", "what", "when", "where", "which", "who", "will", "with", "would", "you", "your":
		return true
	}
	return false
}
