package policy

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/registry"
)

// Rule is one entry of policy.rules, of allowedTools or of excludeTools. Every
// field that is set must match; a rule with none matches every call.
//
// A rule that allows, or runs in the sandbox, matches narrowly: the tool's
// registered name or, for an MCP tool, server__tool, case-sensitively, and an
// error in When counts as false. A rule that asks or denies matches any spelling
// of the tool, ignoring case, and an error in When counts as true.
type Rule struct {
	Tool     string // glob over names; aliases of built-in tools match too
	Source   string // glob over "builtin", "command", "plugin:ID", "mcp:SERVER"
	Server   string // glob over names of MCP servers; Tool may then be the server's own name of the tool
	Category string
	Command  string         // the first words of a simple shell command
	Path     string         // glob over the paths that the call names, ** included
	When     *jq.Expression // over the params, which must return true; nil: all params
	Decision Decision
	Reason   string // shown to the person and to the model
	Origin   string // file:line, flag or "default"

	texts *texts // of Path, in lower case unless the rule loosens
}

// Compile prepares the rule for long lists; without it, the rule decides the same
// but more slowly. It reports a rule that could never do what it says: a command
// that is more than plain words, a broken glob, an unknown category.
func (r *Rule) Compile() error {
	if r.Command != "" {
		if !shell.IsPlain(r.Command) {
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
	switch {
	case r.Path == "":
	case r.isNarrow():
		r.texts = textsOf(r.Path)
	default:
		r.texts = textsOf(strings.ToLower(r.Path))
	}
	return nil
}

// isNarrow reports whether the rule loosens, so that a doubt must not make it
// match.
func (r *Rule) isNarrow() bool { return r.Decision == Allow || r.Decision == Sandbox }
