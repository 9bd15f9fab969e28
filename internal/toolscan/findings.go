package toolscan

import (
	"slices"
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
