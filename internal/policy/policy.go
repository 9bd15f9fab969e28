package policy

import (
	"github.com/toolreg/toolreg/internal/registry"
)

// Policy decides on calls. Its fields are read only once in use; it is safe for
// concurrent use. The zero value allows reading and asks about the rest.
type Policy struct {
	// Rules are tried in order; the first that matches decides. The caller
	// orders them: exclusions, flags, system, user, project.
	Rules []Rule
	// Mode is the approval mode; "" is ModeDefault. ModeOrigin tells where it
	// was set, for messages.
	Mode       Mode
	ModeOrigin string
	// Defaults replace the built-in defaults by category; Decision, Reason and
	// Origin of the rules count.
	Defaults map[registry.Category]Rule
	// Banned are programs that no shell command may name, whatever the rules
	// and the mode say (setting shell.banned).
	Banned []registry.Entry
	// AskCatastrophic makes a question for a person, which no mode answers, of
	// what would ruin the machine and is else denied (setting
	// shell.catastrophic).
	AskCatastrophic bool
	// Shell is the grammar of shell commands, as [shellline.Read] takes it. A line
	// in one that it does not know is never allowed by a rule on commands.
	Shell string
	// Canonical returns the built-in tool that a name or an alias stands for,
	// "" if none. nil: there are no aliases.
	Canonical func(name string) string
	// Guarded reports whether a path relative to the workspace must always be
	// asked about before it is changed. nil: none.
	Guarded func(path string) bool
	// Workspace is the absolute path of the workspace, for rules that name
	// absolute paths.
	Workspace string
	// TrustOrigins tells where each server is trusted, by its name.
	TrustOrigins map[string]string
	// Approvals are the remembered answers; nil means none, and nothing can be
	// remembered.
	Approvals *Approvals
}

func (p *Policy) modeOrigin() string {
	if p.ModeOrigin == "" {
		return "approvalMode"
	}
	return p.ModeOrigin
}
