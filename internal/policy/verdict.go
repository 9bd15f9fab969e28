package policy

import (
	"context"
	"fmt"
	"slices"
)

// Verdict is the decision on one call and the reason for it. The zero value
// asks.
type Verdict struct {
	Decision Decision
	Reason   string // one line for people; untrusted text in it is quoted
	Origin   string // file:line, flag, "approval" or "default"
	Clause   string // name of the clause of the policy that decided
	// Later is set if no rule denied the call, but it needs an answer, and answers cannot be read
	// now.
	Later bool
	// Rule is the rule that decided; nil if none did.
	Rule *Rule
	// Approval is the id of the remembered approval that allowed the call; "" if
	// none did.
	Approval string
	// Commands holds the verdict on each simple command of a shell command line.
	Commands []CommandVerdict
	// Scopes are the scopes that an "always" can be remembered for, the default
	// first. It is empty if nothing can be remembered.
	Scopes []Scope
	// Firm is set if no rule or approval can avoid the question.
	Firm bool
	// ByPath is set if a rule allows the call, but only together with its path.
	ByPath bool
	// Unread is set if the command line cannot be parsed reliably, Unsure if some
	// of its programs are not known before it runs. The mode yolo denies such
	// lines if banned commands cannot be ruled out.
	Unread, Unsure bool
	// Person is set if only a person may answer, regardless of the mode.
	Person bool
	// Agreed is set if the mode answers every question with yes, including
	// questions that come up after the decision.
	Agreed bool
	// Confine says whether the call runs in the sandbox if it is allowed.
	Confine Confinement
	// InSandbox says how the call runs if the answer is to run it in the sandbox. It
	// is zero unless such a scope is offered.
	InSandbox Confinement
	// Hides reports whether the call must not show a path although it may run,
	// because a rule denies the path or asks about it. It is safe for concurrent
	// use. It is nil if no rule hides anything, and for all but built-in tools.
	Hides func(path string) bool
	// HidesKey identifies Hides: from calls with the same key it hides the same. "" if it is nil.
	HidesKey string
	// Paths are the paths of the call, including the files that its command line
	// writes.
	Paths []string
	// Contested is a failed server that may have the name of the tool, so that a call asks that
	// would otherwise be allowed; "" if there is none.
	Contested string
	// Accept records what a person who confirms the call accepts for later calls as well; nil if
	// there is nothing.
	Accept func(context.Context) error
	// Changes are the changes to the tool that void a remembered approval.
	Changes []Change

	remember string   // for a part of a command line: what an approval would cover
	changed  []string // for such a part: files that its program starts with and that may have been changed
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

// Roots returns the programs of a shell command line, in order and without
// duplicates.
func (v *Verdict) Roots() []string {
	var out []string
	for _, c := range v.Commands {
		if c.Root != "" && !slices.Contains(out, c.Root) {
			out = append(out, c.Root)
		}
	}
	return out
}

// CommandVerdict is the decision on one part of a shell command line.
type CommandVerdict struct {
	Text     string   `json:"text"`           // as written
	Root     string   `json:"root,omitempty"` // the program; "" if it is not known before the line runs
	Decision Decision `json:"decision"`
	Reason   string   `json:"reason"`
	Origin   string   `json:"origin"`
	Clause   string   `json:"clause"` // name of the clause of the policy that decided

	remember string // the first words of the commands that an approval would cover
	moved    bool   // it runs what it finds in a folder that may not belong to the project
}

// Confinement says how a call runs if it is allowed.
type Confinement struct {
	On bool
	// Online is set if the network is enabled unless the settings say otherwise.
	Online bool
	// By is the rule, setting or flag that requests the sandbox.
	By string
	// Outside is set if a person may be asked to run the call again without the
	// sandbox after it has failed because of it.
	Outside bool
	// Changed returns the files that the command starts with and that a sandboxed program may
	// have changed, for calls that may run outside as well. It may be nil.
	Changed func() []string
	// Missing is the reason why the call runs without a sandbox although By
	// requests one; "" if none is requested.
	Missing string
	// Allows describes what the program may do in the sandbox; it returns "" if it
	// cannot be confined. It is nil if the call starts no program.
	Allows func() string
}

// String describes in one line how the call runs. If it is not confined, the line
// says what the sandbox would allow. It is "" for calls that start no program.
func (c Confinement) String() string {
	switch {
	case c.On && c.Allows != nil:
		return fmt.Sprintf("on (%s): %s", c.By, c.Allows())
	case c.Missing != "":
		return fmt.Sprintf("unavailable, running without it (%s): %s", c.By, c.Missing)
	case c.Allows == nil:
		return ""
	}
	if allows := c.Allows(); allows != "" {
		return "off; a rule with the decision sandbox would turn it on: " + allows
	}
	return ""
}
