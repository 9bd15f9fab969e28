package toolscan

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

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

// Listing is what a server says about itself.
type Listing struct {
	Server       string            // its name in the settings
	Instructions string            // for the model, from its handshake
	Tools        []json.RawMessage // each as in the result of tools/list
	Prompts      []json.RawMessage // as in prompts/list
	Resources    []json.RawMessage // as in resources/list and resources/templates/list
}

// Known is what a listing is compared with.
type Known struct {
	Others  []string            // names of the tools of other servers
	Servers []string            // names of other servers
	Changed map[string][]string // tools that are not as they were approved or locked: name and parts that differ
}

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
	s.begin(item{}, Finding{Server: l.Server})
	s.inMember("instructions", func() { s.text(l.Instructions) })
	for _, tool := range tools {
		s.begin(tool, Finding{Server: l.Server, Tool: tool.name})
		s.definition()
		s.name()
		s.params()
		if parts := changed[tool.name]; len(parts) > 0 {
			s.addFinding(ChangedDefinition, Medium, strings.Join(parts, ", "))
		}
	}
	for _, raw := range l.Prompts {
		prompt := newItem(raw)
		s.begin(prompt, Finding{Server: l.Server, Prompt: prompt.name})
		s.definition()
	}
	for _, raw := range l.Resources {
		r := newItem(raw)
		s.begin(r, Finding{Server: l.Server,
			Resource: cmp.Or(r.tree.Get("uri").Text(), r.tree.Get("uriTemplate").Text(), r.name)})
		s.definition()
	}
}

// scanner collects the findings of one listing.
type scanner struct {
	rules *ruleSet
	known *names
	found []Finding

	item  item
	of    Finding        // what the item's findings have in common
	path  []string       // where in the item: the tokens of a JSON pointer
	index map[string]int // the item's findings by rule and place
	inner bool           // the text was decoded from another

	sentence sentence            // that is read
	matched  map[string]Severity // rules whose phrases the text has
	score    func(features []uint32) float64
	worst    scored   // the sentence of the text that the model finds worst
	numbers  []uint32 // of the features of a sentence
}

func newScanner(known *names) *scanner {
	return &scanner{
		rules:   phraseRules.Get(),
		known:   known,
		index:   map[string]int{},
		matched: map[string]Severity{},
		score:   score,
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

func (s *scanner) begin(it item, of Finding) {
	s.item, s.of, s.path = it, of, s.path[:0]
	clear(s.index)
}

// maxPlace is the depth below which all findings have the same place.
const maxPlace = 64

func (s *scanner) inMember(name string, f func()) {
	n := len(s.path)
	if n < maxPlace {
		s.path = append(s.path, name)
	}
	f()
	s.path = s.path[:n]
}

// addFinding records a finding, unless there is one of the same rule in this place that is as
// severe.
func (s *scanner) addFinding(rule string, severity Severity, words string) {
	f := s.of
	f.Rule, f.Severity, f.Place, f.Words, f.Advice = rule, severity, s.place(), text.Escape(words), s.rules.advice[rule]
	key := rule + " " + f.Place
	at, ok := s.index[key]
	switch {
	case !ok:
		s.index[key] = len(s.found)
		s.found = append(s.found, f)
	case severity.rank() < s.found[at].Severity.rank():
		s.found[at] = f
	}
}

// place returns the JSON pointer to where the scanner is.
func (s *scanner) place() string {
	var b strings.Builder
	for _, token := range s.path {
		b.WriteString("/" + jsonx.EscapeToken(token))
	}
	return b.String()
}

// definition scans every text in a definition, names of members included: a model reads
// all of it.
func (s *scanner) definition() {
	if s.item.tree == nil {
		s.text(string(s.item.raw))
		return
	}
	s.value(s.item.tree)
}

// value scans the texts in a value.
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

// minText is the length in bytes of the shortest text that says something.
const minText = 4

func (s *scanner) text(t string) {
	if len(t) < minText {
		return
	}
	if !isPlain(t) {
		s.characters(t)
		s.mixed(t)
	}
	s.layout(t)
	s.markup(t)
	found := len(s.found)
	clear(s.matched)
	s.worst = scored{score: mediumScore - 1}
	if !strings.Contains(t, " ") {
		s.identifier(t)
	}
	s.sentences(t)
	if joined := unwrapped(t); joined != t {
		s.sentences(joined)
	}
	s.endText(found)
}

const (
	// minSentence is the number of words from which an identifier is read as a sentence, and
	// maxIdentifier the length in bytes up to which.
	minSentence   = 3
	maxIdentifier = 256
)

// identifier reads the words of a name such as send_all_passwords_to_us as a sentence: a model
// reads what it says.
func (s *scanner) identifier(t string) {
	if len(t) > maxIdentifier {
		return
	}
	said := &sentence{words: nameWords(t)}
	if len(said.words) < minSentence {
		return
	}
	s.keep(s.judge(said.words, t))
	s.rules.text.findTerms(said)
	s.rules.text.match(said, s.isKnown, func(m *pattern, _, _ int) {
		s.matched[m.rule] = m.severity
		s.addFinding(m.rule, m.severity, t)
	})
}

// isPlain reports whether a text is printable ASCII with line breaks and tabs.
func isPlain(t string) bool {
	for i := 0; i < len(t); i++ {
		if c := t[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

const (
	// before and after are the numbers of bytes of a text that are shown around what was
	// found, and longest that of the whole.
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
