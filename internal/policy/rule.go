package policy

import (
	"fmt"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolreg/toolreg/internal/policy/shellline"
	"github.com/toolreg/toolreg/internal/registry"
)

// Rule is one entry of policy.rules, of allowedTools or of excludeTools. Every
// field that is set must match; a rule with none matches every call.
//
// A rule that allows matches narrowly: the tool's registered name or, for an
// MCP tool, server__tool, case-sensitively. A rule that asks or denies matches
// any spelling of the tool, ignoring case.
type Rule struct {
	Tool     string // glob over names; aliases of built-in tools match too
	Source   string // glob over "builtin", "command", "plugin:ID", "mcp:SERVER"
	Server   string // glob over names of MCP servers; Tool may then be the server's own name of the tool
	Category string
	Command  string // the first words of a simple shell command
	Path     string // glob over the paths that the call names, ** included
	Decision Decision
	Reason   string // shown to the person and to the model
	Origin   string // file:line, flag or "default"
}

// Validate reports a rule that could never do what it says: a command that is
// more than plain words, a broken glob, an unknown category.
func (r *Rule) Validate() error {
	if r.Command != "" {
		if !shellline.IsPlain(r.Command) {
			return fmt.Errorf("command %q must be plain words, the beginning of a simple command", r.Command)
		}
	}
	if r.Path != "" && !doublestar.ValidatePattern(r.Path) {
		return fmt.Errorf("path %q is not a valid glob", r.Path)
	}
	if r.Category != "" && !registry.Category(r.Category).Valid() {
		return fmt.Errorf("unknown category %q; use read, write, command, network or other", r.Category)
	}
	for _, glob := range []string{r.Tool, r.Source, r.Server} {
		if !doublestar.ValidatePattern(glob) {
			return fmt.Errorf("%q is not a valid glob", glob)
		}
	}
	return nil
}

func (r *Rule) reason() string {
	if r.Reason != "" {
		return r.Reason
	}
	switch r.Decision {
	case Allow:
		return "a rule allows it"
	case Deny:
		return "a rule denies it"
	}
	return "a rule requires confirmation"
}
