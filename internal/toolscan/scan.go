// Package toolscan reads what a server says about itself, its tools, prompts and
// resources, and reports text that may steer a model or hide something from a person:
// invisible characters, instructions to the reader, demands for files, secrets or the
// conversation, references to the tools of other servers, names that resemble theirs.
//
// [Scan] is a pure function over the listing as the server sent it. Rules find what has a
// form: rules.txt has phrases, the names of params and the advice for what the other files
// find. What is said in other words or languages is left to a linear model of sentences, whose
// weights are in weights.bin and whose words in lexicon.txt; testdata/README.md tells how it
// is trained. The time is proportional to the size of the listing, because the listing is
// untrusted.
//
// The model misses texts, so a listing without findings is not known to be harmless.
package toolscan

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
	"github.com/toolreg/toolreg/internal/text"
)

// Listing is what a server says about itself.
type Listing struct {
	Server       string            // its name in the settings
	Instructions string            // for the model, from its handshake
	Tools        []json.RawMessage // each as in the result of tools/list
	Prompts      []json.RawMessage // as in prompts/list
	Resources    []json.RawMessage // as in resources/list and resources/templates/list
}

// Known is the context with which a listing is compared.
type Known struct {
	Others  []string            // names of the tools of other servers
	Servers []string            // names of other servers
	Changed map[string][]string // tools that differ from what was approved or locked: name and changed parts
}

// ChangedDefinition is the rule of the findings about Known.Changed.
const ChangedDefinition = "changed-definition"

// Scan returns the findings in a listing, the most severe first, at most one for each rule
// and place.
func Scan(l Listing, known Known) []Finding {
	s := newScanner(newNames(known.Others, known.Servers))
	s.listing(l, known.Changed)
	slices.SortStableFunc(s.found, func(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
	return s.found
}

func (s *scanner) listing(l Listing, changed map[string][]string) {
	tools := make([]item, 0, len(l.Tools))
	for _, raw := range l.Tools {
		tools = append(tools, newItem(raw))
	}
	s.exclude(tools)
	s.begin(Finding{Server: l.Server})
	s.inMember("instructions", func() { s.text(l.Instructions) })
	for _, tool := range tools {
		s.begin(Finding{Server: l.Server, Tool: tool.name})
		s.definition(tool)
		if severity, words := s.known.similar(tool.name); words != "" {
			s.inMember("name", func() { s.addFinding("similar-name", severity, words) })
		}
		s.params(tool)
		if parts := changed[tool.name]; len(parts) > 0 {
			s.addFinding(ChangedDefinition, Medium, strings.Join(parts, ", "))
		}
	}
	for _, raw := range l.Prompts {
		prompt := newItem(raw)
		s.begin(Finding{Server: l.Server, Prompt: prompt.name})
		s.definition(prompt)
	}
	for _, raw := range l.Resources {
		r := newItem(raw)
		s.begin(Finding{Server: l.Server,
			Resource: cmp.Or(r.tree.Get("uri").Text(), r.tree.Get("uriTemplate").Text(), r.name)})
		s.definition(r)
	}
}

// item is a tool, a prompt or a resource.
type item struct {
	name string
	raw  json.RawMessage
	tree *jsonx.Value // nil if raw is not JSON
}

func newItem(raw json.RawMessage) item {
	tree, err := jsonx.Parse(raw, jsonx.Options{})
	if err != nil {
		return item{raw: raw}
	}
	return item{name: tree.Get("name").Text(), raw: raw, tree: tree}
}

// definition scans every text in a definition, including names of members, because a model reads
// all of it.
func (s *scanner) definition(it item) {
	if it.tree == nil {
		s.text(string(it.raw))
		return
	}
	s.value(it.tree)
}

func (s *scanner) value(v *jsonx.Value) {
	switch v.Kind {
	case jsonx.String:
		s.text(v.Text())
	case jsonx.Array:
		for i, item := range v.Items {
			s.inMember(strconv.Itoa(i), func() { s.value(item) })
		}
	case jsonx.Object:
		for i := range v.Members {
			m := &v.Members[i]
			s.inMember(m.Name, func() {
				s.text(m.Name)
				s.value(m.Value)
			})
		}
	}
}

// exclude removes from the known names those in the listing itself.
func (s *scanner) exclude(tools []item) {
	for _, tool := range tools {
		s.known.own[fold(tool.name)] = true
		for _, property := range []string{"inputSchema", "outputSchema"} {
			s.eachProperty(tool.tree.Get(property), 0, func(name string) { s.known.own[fold(name)] = true })
		}
	}
}

// params checks the names of a tool's params for demands that its purpose does not explain.
func (s *scanner) params(tool item) {
	if s.aboutModels(tool) {
		return
	}
	check := func(name string) {
		clear(s.matched)
		words := &sentence{words: nameWords(name)}
		s.rules.param.findTerms(words)
		s.rules.param.match(words, s.isKnown, func(m *pattern, _, _ int) { s.addFinding(m.rule, m.severity, name) })
	}
	s.inMember("inputSchema", func() { s.eachProperty(tool.tree.Get("inputSchema"), 0, check) })
	for _, hints := range []string{"annotations", "_meta"} {
		if v := tool.tree.Get(hints); v.Is(jsonx.Object) {
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
func (s *scanner) aboutModels(tool item) bool {
	for _, t := range []string{
		tool.name, tool.tree.Get("title").Text(), text.FirstSentence(text.Head(tool.tree.Get("description").Text(), 200)),
	} {
		if slices.ContainsFunc(nameWords(t), func(w word) bool { return s.rules.about[w.text] }) {
			return true
		}
	}
	return false
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

// Severity is how likely a finding is an attack, and how much it could do.
type Severity string

// The severities.
const (
	High   Severity = "high"   // hardly ever in a harmless text
	Medium Severity = "medium" // steers a model, but may be meant well
	Low    Severity = "low"    // worth a look
)

// rank orders severities, the most severe first.
func (s Severity) rank() int { return slices.Index([]Severity{High, Medium, Low}, s) }

// Finding is one thing in a listing that a person should look at. It is part of the JSON of
// servers check.
type Finding struct {
	Rule     string   `json:"rule"`               // as in docs/checking-servers.md
	Severity Severity `json:"severity"`           // how likely it is an attack
	Server   string   `json:"server"`             // MCP server or API
	Tool     string   `json:"tool,omitempty"`     // the server's own name for the tool
	Prompt   string   `json:"prompt,omitempty"`   // its name
	Resource string   `json:"resource,omitempty"` // its URI
	// Place is a JSON pointer into the definition; "/instructions" for those of the server.
	Place  string `json:"place"`
	Words  string `json:"words"`  // what was found, with invisible characters as escapes
	Advice string `json:"advice"` // what it means, or what to do
}

const (
	// before and after are the numbers of bytes that are shown on either side of a finding, and
	// longest is the maximum length of the excerpt.
	before, after = 24, 60
	longest       = 240
)

// excerpt returns the part of a text around what was found.
func excerpt(t string, start, end int) string {
	from := max(0, start-before)
	for from > 0 && from < start && t[from-1] != ' ' && t[from-1] != '\n' {
		from++
	}
	to := min(len(t), end+after, start+longest)
	out := strings.Join(strings.Fields(text.Valid(text.Head(t[from:], to-from))), " ")
	if from > 0 {
		out = text.Ellipsis + out
	}
	if to < len(t) {
		out += text.Ellipsis
	}
	return out
}

// findings are those of one listing.
type findings struct {
	advice map[string]string // by rule
	found  []Finding

	of    Finding        // what the findings in one item have in common
	path  []string       // where in the item: the tokens of a JSON pointer
	index map[string]int // the item's findings by rule and place
}

func (f *findings) begin(of Finding) {
	f.of, f.path = of, f.path[:0]
	clear(f.index)
}

// maxPlace is the depth below which all findings have the same place.
const maxPlace = 64

func (f *findings) inMember(name string, do func()) {
	n := len(f.path)
	if n < maxPlace {
		f.path = append(f.path, name)
	}
	do()
	f.path = f.path[:n]
}

// addFinding records a finding, unless there is one of the same rule in this place that is as
// severe.
func (f *findings) addFinding(rule string, severity Severity, words string) {
	n := f.of
	n.Rule, n.Severity, n.Place, n.Words, n.Advice = rule, severity, f.place(), text.Escape(words), f.advice[rule]
	key := rule + " " + n.Place
	at, ok := f.index[key]
	switch {
	case !ok:
		f.index[key] = len(f.found)
		f.found = append(f.found, n)
	case severity.rank() < f.found[at].Severity.rank():
		f.found[at] = n
	}
}

// place returns the JSON pointer to path.
func (f *findings) place() string {
	var b strings.Builder
	for _, token := range f.path {
		b.WriteString("/" + jsonx.EscapeToken(token))
	}
	return b.String()
}
