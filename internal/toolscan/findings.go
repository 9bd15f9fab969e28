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
