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
// invisible characters removed, so that rules need only one form.
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

// maxWord is the length in bytes beyond which a word is ignored.
const maxWord = 80

// minText is the length in bytes of the shortest text that can mean something.
const minText = 4

// isInHome reports whether a folded chunk is a path in a person's home folder.
func isInHome(chunk string) bool {
	chunk = strings.TrimLeft(chunk, "`\"'(")
	return slices.ContainsFunc([]string{"~/", "$home/", "${home}/", "%userprofile%", "%appdata%", "%localappdata%"},
		func(start string) bool { return strings.HasPrefix(chunk, start) && len(chunk) > len(start) })
}

// isSecretName reports whether a chunk is a variable in capitals that contains a secret.
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

// unwrapped returns a text in which words that a line break divides are joined. It also joins words
// that were meant to be two.
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

// nameWords returns the words of a name, such as readFile and read_file.
func nameWords(name string) []word {
	var out []word
	var b strings.Builder
	end := func() {
		if b.Len() > 0 {
			out = append(out, word{text: fold(b.String())})
			b.Reset()
		}
	}
	last := rune(0)
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case unicode.IsUpper(r) && unicode.IsLower(last):
			end()
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
		last = r
	}
	end()
	return out
}

const (
	// minName is the length in characters of the shortest name that no text uses by accident.
	minName = 8
	// minSimilar is the length of the shortest name that may be similar to another on purpose.
	minSimilar = 4
	// minEdited is the length of the shortest name that has another letter on purpose.
	minEdited = 5
)

// names are the names of the tools of other servers.
type names struct {
	plain   map[string]string // names by their plain forms
	length  map[int][]string  // plain forms by length
	looks   map[string]string // names by their skeletons
	words   map[string]bool   // folded names that no text uses by accident
	servers map[string]bool   // folded names of the servers
	own     map[string]bool   // folded names of the listing itself
}

func newNames(others, servers []string) *names {
	n := &names{
		plain:   map[string]string{},
		length:  map[int][]string{},
		looks:   map[string]string{},
		words:   map[string]bool{},
		own:     map[string]bool{},
		servers: map[string]bool{},
	}
	for _, name := range servers {
		n.servers[fold(name)] = true
	}
	for _, name := range others {
		plain := plainName(name)
		if len(name) > maxWord || len(plain) < minSimilar {
			continue
		}
		if n.plain[plain] == "" {
			n.plain[plain] = name
			n.length[len(plain)] = append(n.length[len(plain)], plain)
			n.looks[skeleton(plain)] = name
		}
		if isIdentifier(name) && len(plain) >= minName {
			n.words[fold(name)] = true
		}
	}
	return n
}

// isIdentifier reports whether a name is made of several words, so that a text that has it
// means the tool.
func isIdentifier(name string) bool {
	return strings.ContainsAny(name, "_-./") || strings.ToLower(name[1:]) != name[1:]
}

// plainName returns a name in lower case without separators.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// skeleton returns the form that plain names share if they look the same.
func skeleton(plain string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.Map(func(r rune) rune {
		switch r {
		case '1', 'i', '|':
			return 'l'
		case '0':
			return 'o'
		case '5':
			return 's'
		}
		return r
	}, fold(plain)), "rn", "m"), "vv", "w")
}

// similar says which name of another tool the name of a tool resembles, "" for none.
func (n *names) similar(name string) (severity Severity, words string) {
	plain := plainName(name)
	if len(plain) < minSimilar || len(name) > maxWord || n.plain[plain] != "" {
		return "", "" // too short, or the same, perhaps written in another way
	}
	if other := n.looks[skeleton(plain)]; other != "" {
		return High, name + " looks like " + other
	}
	for length := len(plain) - 1; length <= len(plain)+1; length++ {
		for _, other := range n.length[length] {
			edited, swapped := text.Typo(plain, other)
			if swapped || edited && len(plain) >= minEdited && !isInflection(plain, other) {
				return Low, name + " resembles " + n.plain[other]
			}
		}
	}
	return "", ""
}

// isInflection reports whether two names differ only in a number or a plural. A doubled s is not a
// plural.
func isInflection(a, b string) bool {
	if strings.Count(a, "ss") != strings.Count(b, "ss") || strings.Contains(a+" "+b, "sss") {
		return false
	}
	stem := func(name string) string { return strings.ReplaceAll(strings.TrimRight(name, "0123456789"), "s", "") }
	return stem(a) == stem(b)
}

// isOther reports whether a word is the name of another server's tool, or ends with it, as
// server__tool does.
func (n *names) isOther(w string) (known, qualified bool) {
	if n.own[w] {
		return false, false
	}
	for at := 0; ; {
		if part := w[at:]; n.words[part] {
			return !n.own[part], at > 0
		}
		next := strings.IndexAny(w[at:], "_-")
		if next < 0 {
			return false, false
		}
		at += next + 1
	}
}
