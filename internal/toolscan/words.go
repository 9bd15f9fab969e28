package toolscan

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/toolreg/toolreg/internal/text"
)

// word is a word of a text: in lower case, with letters that resemble Latin ones replaced and
// invisible characters removed, so that rules need one form only.
type word struct {
	text       string // or fileWord, addressWord
	raw        string // as written, without the punctuation around it
	start, end int    // where it is in the text
}

// The texts of words that are paths of secrets, and addresses to which data could be sent.
// They are also terms of patterns.
const (
	fileWord    = "$file"
	addressWord = "$address"
	homeWord    = "$home"       // another path in the home folder
	secretWord  = "$secretname" // a variable such as GITHUB_TOKEN
	imageWord   = "$image"      // an image that a reply would load
)

// maxWord is the length in bytes beyond which a word is not looked at.
const maxWord = 80

// sentences splits a text into sentences, and matches the phrases with each.
func (s *scanner) sentences(t string) {
	s.sentence.words = s.sentence.words[:0]
	lines := 0 // line breaks since the last word
	for i := 0; i < len(t); {
		r, n := utf8.DecodeRuneInString(t[i:])
		if unicode.IsSpace(r) {
			if r == '\n' {
				lines++
			}
			i += n
			continue
		}
		if lines > 1 {
			s.endSentence(t)
		}
		lines = 0
		end := i
		for end < len(t) {
			r, n := utf8.DecodeRuneInString(t[end:])
			if unicode.IsSpace(r) {
				break
			}
			end += n
		}
		if s.chunk(t, i, end) {
			s.endSentence(t)
		}
		i = end
	}
	s.endSentence(t)
}

const (
	quotes = "\"'`()[]{}<>*,:“”‘’…—" // what surrounds words
	ends   = ".!?;。！？"               // what ends sentences

	// maxSentence is the number of words after which a sentence ends.
	maxSentence = 4096
)

// chunk appends the words between two blanks, and reports whether a sentence ends with them.
func (s *scanner) chunk(t string, start, end int) (isEnd bool) {
	raw := t[start:end]
	s.encoded(raw)
	raw = strings.Trim(raw, quotes)
	whole := len(raw)
	raw = strings.TrimRight(raw, ends+quotes) // the quotes before them, too
	isEnd = len(raw) < whole || len(s.sentence.words) >= maxSentence
	folded := fold(raw)
	switch {
	case s.rules.isFile(folded):
		s.sentence.words = append(s.sentence.words, word{fileWord, raw, start, end})
	case isImage(folded):
		s.sentence.words = append(s.sentence.words, word{imageWord, raw, start, end})
	case isAddress(folded):
		s.sentence.words = append(s.sentence.words, word{addressWord, raw, start, end})
	case isInHome(folded):
		s.sentence.words = append(s.sentence.words, word{homeWord, raw, start, end})
	case isSecretName(raw):
		s.sentence.words = append(s.sentence.words, word{secretWord, raw, start, end})
	case s.known.words[folded]: // with dots, perhaps
		s.sentence.words = append(s.sentence.words, word{folded, raw, start, end})
	default:
		if strings.Contains(raw, "_") && !s.known.own[folded] {
			s.identifier(raw)
		}
		s.split(folded, raw, start, end)
	}
	return isEnd
}

// isInHome reports whether a folded chunk is a path in a person's home folder.
func isInHome(chunk string) bool {
	chunk = strings.TrimLeft(chunk, "`\"'(")
	return slices.ContainsFunc([]string{"~/", "$home/", "${home}/", "%userprofile%", "%appdata%", "%localappdata%"},
		func(start string) bool { return strings.HasPrefix(chunk, start) && len(chunk) > len(start) })
}

// isSecretName reports whether a chunk is a variable that has a secret, as written in
// capitals.
func isSecretName(chunk string) bool {
	chunk = strings.Trim(chunk, "`\"'()$%{},.;:")
	return strings.Contains(chunk, "_") && strings.ToUpper(chunk) == chunk &&
		slices.ContainsFunc([]string{"TOKEN", "SECRET", "KEY", "PASSWORD", "PASSWD", "CREDENTIAL"},
			func(part string) bool { return strings.Contains(chunk, part) })
}

// isImage reports whether a folded chunk is an image in Markdown or HTML with an address.
func isImage(chunk string) bool {
	return strings.HasPrefix(chunk, "![") && strings.Contains(chunk, "](http") ||
		strings.HasPrefix(chunk, "src=") && strings.Contains(chunk, "http")
}

// split appends the words of a chunk that are separated by punctuation. An identifier is one
// word.
func (s *scanner) split(folded, raw string, start, end int) {
	if r, n := utf8.DecodeRuneInString(folded); n == len(folded) && n > 0 && !isSymbol(r) {
		s.letter(folded, start, end)
		return
	}
	for part := range strings.FieldsFuncSeq(folded, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '_' && r != '\'' && r != '-'
	}) {
		for _, part := range symbols(strings.Trim(part, "'-_")) {
			if len(part) <= maxWord && len(s.sentence.words) < maxSentence {
				s.sentence.words = append(s.sentence.words, word{part, raw, start, end})
			}
		}
	}
}

// isSymbol reports whether a character belongs to a script that has no blanks between words.
func isSymbol(r rune) bool {
	return r >= 0xe00 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) || r == 'ー')
}

// symbols splits a folded word before and after each character of a script without blanks,
// because only such a character is certainly in one word.
func symbols(w string) []string {
	if !strings.ContainsFunc(w, isSymbol) {
		if w == "" {
			return nil
		}
		return []string{w}
	}
	var out []string
	from := 0
	for i, r := range w {
		if !isSymbol(r) {
			continue
		}
		if from < i {
			out = append(out, w[from:i])
		}
		from = i + utf8.RuneLen(r)
		out = append(out, w[i:from])
	}
	if from < len(w) {
		out = append(out, w[from:])
	}
	return out
}

// letter appends a single letter: to the word before if that is made of single letters too.
func (s *scanner) letter(letter string, start, end int) {
	if n := len(s.sentence.words); n > 0 {
		if last := &s.sentence.words[n-1]; last.end == start-1 && last.raw == "" && len(last.text) < maxWord {
			last.text, last.end = last.text+letter, end
			return
		}
	}
	s.sentence.words = append(s.sentence.words, word{letter, "", start, end})
}

// isAddress reports whether a chunk is a URL or an email address other than an example.
func isAddress(chunk string) bool {
	_, host, ok := strings.Cut(chunk, "http://")
	if !ok {
		_, host, ok = strings.Cut(chunk, "https://")
	}
	if !ok {
		_, host, ok = strings.Cut(chunk, "@")
		ok = ok && strings.IndexByte(host, '.') > 0 && chunk[0] != '@'
	}
	host, _, _ = strings.Cut(host, "/")
	return ok && !strings.Contains(host, "example.") &&
		!strings.HasPrefix(host, "localhost") && !strings.HasPrefix(host, "127.")
}

// fold returns a text in the form in which words are compared.
func fold(t string) string {
	plain := true
	for i := 0; i < len(t) && plain; i++ {
		plain = t[i] < utf8.RuneSelf
	}
	if plain {
		return strings.ToLower(t)
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r), r > ' ' && text.Invisible(r):
			return -1
		}
		return lookalike(unicode.ToLower(r))
	}, norm.NFKD.String(strings.ReplaceAll(t, "’", "'")))
}

// lookalike returns the Latin letter that a Cyrillic or Greek lower-case letter resembles; any
// other character is returned unchanged.
func lookalike(r rune) rune {
	const (
		these = "аеорсухіјѕһԁԛԝвкмнтгпαεορυνικτχϲ"
		those = "aeopcyxijshdqwbkmhtrnaeopuvikTxc"
	)
	if r < 0x370 {
		return r
	}
	if at := strings.IndexRune(these, r); at >= 0 {
		return unicode.ToLower(rune(those[utf8.RuneCountInString(these[:at])]))
	}
	return r
}

// unwrapped returns a text in which words that a line break divides are whole. It also joins
// words that were meant to be two.
func unwrapped(t string) string {
	if !strings.Contains(t, "\n") {
		return t
	}
	var b strings.Builder
	for i := 0; i < len(t); i++ {
		hyphen := 0
		if t[i] == '-' {
			hyphen = 1
		}
		if at := i + hyphen; at+1 < len(t) && t[at] == '\n' && i > 0 && isLetterByte(t[i-1]) && isLetterByte(t[at+1]) {
			i = at
			continue
		}
		b.WriteByte(t[i])
	}
	return b.String()
}

// isLetterByte reports whether a byte is a letter, or a part of one that is not ASCII.
func isLetterByte(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf }

// minEncoded is the length in bytes of the shortest chunk that is decoded.
const minEncoded = 24

// encoded reports a chunk that is text in base64 or hexadecimal digits.
func (s *scanner) encoded(chunk string) {
	if s.inner || len(chunk) < minEncoded {
		return
	}
	for part := range strings.FieldsFuncSeq(chunk, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
			r >= '0' && r <= '9' || strings.ContainsRune("+/-_=", r))
	}) {
		if len(part) < minEncoded {
			continue
		}
		clear, ok := decode(part)
		if !ok {
			continue
		}
		inner := newScanner(s.known)
		inner.inner = true
		inner.text(clear)
		severity := Medium
		for _, f := range inner.found {
			if f.Severity == High {
				severity = High
			}
		}
		s.addFinding("encoded-text", severity, excerpt(clear, 0, len(clear)))
	}
}

// decode returns the text that a chunk encodes.
func decode(chunk string) (string, bool) {
	if out, err := hex.DecodeString(chunk); err == nil {
		return string(out), isSentence(string(out))
	}
	chunk = strings.NewReplacer("-", "+", "_", "/").Replace(strings.Trim(chunk, "="))
	out, err := base64.RawStdEncoding.DecodeString(chunk[:len(chunk)-len(chunk)%4])
	return string(out), err == nil && isSentence(string(out))
}

// isSentence reports whether decoded bytes are text of several words.
func isSentence(t string) bool {
	if !utf8.ValidString(t) || len(strings.Fields(t)) < 3 {
		return false
	}
	return !strings.ContainsFunc(t, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) })
}
