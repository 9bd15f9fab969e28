package toolscan

import (
	"strings"
	"unicode"

	"github.com/toolreg/toolreg/internal/text"
)

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

// skeleton returns the form that plain names have in common if they look the same.
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

// isInflection reports whether two names differ in a number or a plural. A doubled s is no
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
