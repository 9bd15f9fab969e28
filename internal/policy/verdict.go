package policy

import "strings"

// Verdict is the decision on one call and the reason for it. The zero value
// asks.
type Verdict struct {
	Decision Decision
	Reason   string // one line for a person; foreign text in it is quoted
	Origin   string // file:line, flag, "approval" or "default"
	// Rule is the rule that decided, nil if none did.
	Rule *Rule
	// Approval is the id of the remembered approval that allowed; "" if none.
	Approval string
	// Commands holds the verdict on each simple command of a shell command line.
	Commands []CommandVerdict
	// Scopes lists what an "always" could be remembered for, the default first; it is
	// empty if nothing may be remembered.
	Scopes []Scope
	// Firm is set if no rule and no approval could make the question unnecessary.
	Firm bool
	// Unread is set for a command line that cannot be parsed reliably, Unsure for one
	// whose programs are not known before it runs. The mode yolo denies them: banned
	// commands cannot be ruled out.
	Unread, Unsure bool
	// Person is set if only a person may answer, in any mode.
	Person bool
	// Agreed is set if the mode answers every question with yes, including questions
	// that come up after the decision.
	Agreed bool
	// Confine says whether the call runs in the sandbox, if it runs.
	Confine Confinement
	// Hides reports which files and folders the call must not show although it may
	// run, because rules deny them or ask about them. It is safe for concurrent use;
	// nil if no rule names paths.
	Hides func(path string) bool
	// Paths are the paths that the call names, as the decision found them.
	Paths []string
	// Changes says why a remembered approval was not used.
	Changes []Change
}

// Scope returns the scope of a kind, if the verdict offers it.
func (v *Verdict) Scope(kind ScopeKind) (Scope, bool) {
	for _, s := range v.Scopes {
		if s.Kind == kind {
			return s, true
		}
	}
	return Scope{}, false
}

// Roots returns the programs of a shell command line, each once, in order.
func (v *Verdict) Roots() []string {
	var out []string
	seen := map[string]bool{}
	for _, c := range v.Commands {
		if c.Root != "" && !seen[c.Root] {
			seen[c.Root] = true
			out = append(out, c.Root)
		}
	}
	return out
}

// CommandVerdict is the decision on one part of a shell command line.
type CommandVerdict struct {
	Text     string   `json:"text"`           // as written
	Root     string   `json:"root,omitempty"` // the program, "" if it is not known before the line runs
	Decision Decision `json:"decision"`
	Reason   string   `json:"reason"`
	Origin   string   `json:"origin"`

	rule     *Rule
	approval string
	remember string // how the commands begin that an approval would cover
}

// Change is one part of a tool that has changed since it was approved.
type Change struct {
	Part     string // as in registry.Part, or "tool" for a tool that is new
	Old, New string // "" if the text was not stored
}

// ScopeKind says what an approval covers.
type ScopeKind string

// The kinds of spec section 8.5.
const (
	ScopeTool    ScopeKind = "tool"    // every call of one tool
	ScopeCommand ScopeKind = "command" // commands of a shell tool that begin with the same words
	ScopeHost    ScopeKind = "host"    // every call of one tool to one host
	ScopeEdits   ScopeKind = "edits"   // every edit by built-in tools in this workspace
	ScopeServer  ScopeKind = "server"  // every tool of one MCP server
)

// Scope is what an answer "always" is remembered for.
type Scope struct {
	Kind ScopeKind
	// Values holds how commands begin for ScopeCommand, as the shell reads them, and
	// the hosts of ScopeHost.
	Values []string
}

// Covers says which commands a ScopeCommand covers, as in `"git status …"`: "…"
// stands for any arguments.
func (s *Scope) Covers() string {
	covers := make([]string, len(s.Values))
	for i, v := range s.Values {
		covers[i] = `"` + v + ` …"`
	}
	return strings.Join(covers, ", ")
}
