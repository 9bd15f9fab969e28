package toolscan

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
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

// name checks the name of a tool.
func (s *scanner) name() {
	name := s.item.name
	plain := plainName(name)
	if len(plain) < minSimilar || len(name) > maxWord || s.known.plain[plain] != "" {
		return // too short, or the same, perhaps written in another way
	}
	similar := func(severity Severity, how, other string) {
		s.inMember("name", func() { s.addFinding("similar-name", severity, name+how+other) })
	}
	if other := s.known.looks[skeleton(plain)]; other != "" {
		similar(High, " looks like ", other)
		return
	}
	for n := len(plain) - 1; n <= len(plain)+1; n++ {
		for _, other := range s.known.length[n] {
			if swapped(plain, other) ||
				len(plain) >= minEdited && oneEdit(plain, other) && !isInflection(plain, other) {
				similar(Low, " resembles ", s.known.plain[other])
				return
			}
		}
	}
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

// swapped reports whether two names differ in the order of two characters.
func swapped(a, b string) bool {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return len(a) == len(b) && i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// oneEdit reports whether two names differ in one character that is missing or another.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return len(a) == len(b) && i < len(a) && a[i+1:] == b[i+1:] || len(a)+1 == len(b) && a[i:] == b[i+1:]
}

// otherTools checks a sentence for instructions about the tools of other servers. What is less
// than certain is a finding if the sentence is suspect.
func (s *scanner) otherTools(t string, suspect bool) {
	called := -nearby - 1 // the last word that calls
	words := s.sentence.words
	for i, w := range words {
		if s.sentence.isTerm(i, s.rules.calling) {
			called = i
		}
		next := ""
		if i+1 < len(words) {
			next = words[i+1].text
		}
		known, qualified := s.known.isOther(w.text)
		if !known && s.known.servers[w.text] && (next == "tool" || next == "tools" || next == "server") {
			known, qualified = true, true
		}
		if !known && !s.known.looksLikeTool(w.text) {
			continue
		}
		steers := s.steers(i)
		asTool := qualified || i-called <= nearby || known && s.sentence.has(s.rules.address) || next == "tool" ||
			i > 0 && words[i-1].text == "tool" || i+2 < len(words) && s.sentence.isTerm(i+2, s.rules.calling)
		switch {
		case known && steers:
			s.addFinding("other-server", High, excerpt(t, w.start, w.end))
		case suspect && asTool && (known || steers):
			s.addFinding("other-server", Medium, excerpt(t, w.start, w.end))
		}
	}
}

// steers reports whether a word that tells what to do stands near a position.
func (s *scanner) steers(at int) bool {
	for i := max(0, at-2*nearby); i <= at+2*nearby && i < len(s.sentence.words); i++ {
		if s.sentence.isTerm(i, s.rules.steering) {
			return true
		}
	}
	return false
}

// nearby is how many words after a verb the name that it is about may stand.
const nearby = 3

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

// looksLikeTool reports whether a word looks like the name of a tool that the listing does not have.
func (n *names) looksLikeTool(w string) bool {
	return strings.Count(w, "_") > 0 && len(w) >= minName && !n.own[w]
}

// maxNesting is the depth to which schemas are searched for params.
const maxNesting = 16

// eachProperty calls f with the name of each property of a schema and of those within it.
func (s *scanner) eachProperty(v *jsonx.Value, depth int, f func(name string)) {
	if !v.Is(jsonx.Object) || depth > maxNesting {
		return
	}
	for i := range v.Members {
		m := &v.Members[i]
		s.inMember(m.Name, func() {
			switch schema.Under(m.Name) {
			case schema.Named:
				for j := range m.Value.Members {
					property := &m.Value.Members[j]
					s.inMember(property.Name, func() {
						if m.Name == "properties" {
							f(property.Name)
						}
						s.eachProperty(property.Value, depth+1, f)
					})
				}
			case schema.Schemas:
				s.eachProperty(m.Value, depth+1, f)
				for j, item := range m.Value.Items {
					s.inMember(strconv.Itoa(j), func() { s.eachProperty(item, depth+1, f) })
				}
			}
		})
	}
}

// exclude leaves out the names that the listing itself has.
func (s *scanner) exclude(tools []item) {
	for _, tool := range tools {
		s.known.own[fold(tool.name)] = true
		for _, property := range []string{"inputSchema", "outputSchema"} {
			s.eachProperty(tool.tree.Get(property), 0, func(name string) { s.known.own[fold(name)] = true })
		}
	}
}

// params checks the names of a tool's params for demands that its purpose does not explain.
func (s *scanner) params() {
	if s.aboutModels() {
		return
	}
	check := func(name string) {
		clear(s.matched)
		words := &sentence{words: nameWords(name)}
		s.rules.param.findTerms(words)
		s.rules.param.match(words, s.isKnown, func(m *pattern, _, _ int) { s.addFinding(m.rule, m.severity, name) })
	}
	s.inMember("inputSchema", func() { s.eachProperty(s.item.tree.Get("inputSchema"), 0, check) })
	for _, hints := range []string{"annotations", "_meta"} {
		if v := s.item.tree.Get(hints); v.Is(jsonx.Object) {
			s.inMember(hints, func() { eachMember(s, v, check) })
		}
	}
}

// eachMember calls f with the name of each member of an object and of those within it.
func eachMember(s *scanner, v *jsonx.Value, f func(name string)) {
	for i := range v.Members {
		m := &v.Members[i]
		s.inMember(m.Name, func() {
			f(m.Name)
			eachMember(s, m.Value, f)
		})
	}
}

// aboutModels reports whether a tool says that it deals with models or conversations.
func (s *scanner) aboutModels() bool {
	for _, t := range []string{
		s.item.name, s.item.tree.Get("title").Text(), firstSentence(s.item.tree.Get("description").Text()),
	} {
		if slices.ContainsFunc(nameWords(t), func(w word) bool { return s.rules.about[w.text] }) {
			return true
		}
	}
	return false
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

// firstSentence returns the first 200 bytes of a text's first sentence.
func firstSentence(t string) string {
	t = t[:min(len(t), 200)]
	if at := strings.Index(t, ". "); at >= 0 {
		return t[:at]
	}
	return t
}
