package policy

import (
	"github.com/toolreg/toolreg/internal/registry"
)

// Policy decides on calls. Its fields must not change once it is in use; it is
// safe for concurrent use. The zero value allows reading and asks about the
// rest.
type Policy struct {
	// Rules are tried in order; the first that matches decides. The caller
	// orders them: exclusions, flags, system, user, project.
	Rules []Rule
	// Mode is the approval mode; "" is ModeDefault. ModeOrigin says where it was set,
	// for messages.
	Mode       Mode
	ModeOrigin string
	// Defaults replace the built-in defaults by category; only Decision, Reason and
	// Origin of the rules are used.
	Defaults map[registry.Category]Rule
	// Banned are programs that no shell command may name, regardless of rules and
	// mode (setting shell.banned).
	Banned []registry.Entry
	// AskCatastrophic asks a person about commands that would ruin the machine, which
	// are denied otherwise. No mode answers that question (setting
	// shell.catastrophic).
	AskCatastrophic bool
	// Shell is the grammar of shell commands, as [shell.Read] takes it. No rule
	// on commands allows a line in an unknown grammar.
	Shell string
	// Canonical returns the built-in tool that a name or an alias stands for, "" if
	// there is none. If nil, there are no aliases.
	Canonical func(name string) string
	// Guarded reports whether a path relative to the workspace always requires
	// confirmation before it is changed. If nil, no path does.
	Guarded func(path string) bool
	// Workspace is the absolute path of the workspace, for rules that name
	// absolute paths.
	Workspace string
	// TrustOrigins says which setting trusts each server, by the server's name.
	TrustOrigins map[string]string
	// Means says how programs of a kind can be confined, by [registry.Tool.Program].
	// If nil, none can.
	Means func(kind string) Means
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
