package policy

import (
	"fmt"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/uri"
)

// Rule is one entry of policy.rules, allowedTools or excludeTools. It matches a
// call if all conditions that are set match; a rule without conditions matches
// every call.
//
// A rule that loosens, with the decision Allow or Sandbox, matches narrowly: it
// must name the tool by its registered name or, for an MCP tool, as server__tool,
// in the same case, and an error in When means false. A rule with the decision Ask
// or Deny matches any name of the tool, ignoring case, and an error in When means
// true.
type Rule struct {
	Tool        string // glob over names; aliases of built-in tools match too
	Source      string // glob over "builtin", "command", "plugin:ID", "mcp:SERVER"
	Server      string // glob over names of MCP servers; Tool may then be the name that the server gives the tool
	Category    string
	Annotations map[string]bool // annotations of the tool; see MCP's ToolAnnotations
	Command     string          // the first words of a simple shell command
	Path        string          // glob over the paths that the call names, ** included
	Client      string          // glob over names of callers; a call without one does not match
	Group       string          // glob over the groups of callers; a call without one does not match
	Profile     string          // name of the profile of serve that the rule is for; empty means all calls
	Layer       int             // of its file; a rule of a profile loosens no deny of a lower one
	Prompt      string          // glob over names of servers' prompts; the rule is about them alone
	Resource    string          // glob over URIs of servers' resources; the rule is about them alone
	When        *jq.Expression  // must return true for the params; nil matches all params
	Decision    Decision
	Reason      string // shown to the person and to the model
	Origin      string // file:line, flag or "default"
	Personal    bool   // it is not of a project's settings

	literals                *literals // of Path, in lower case unless the rule loosens
	compiled                bool
	toolPrefix, groupPrefix string   // literalPrefix of Tool and Group
	resources               []string // uri.Patterns of Resource
}

// Compile prepares the rule for fast matching; a rule that was not compiled
// matches the same calls, but more slowly. It returns an error if a condition is
// invalid: a command that is not plain words, a malformed glob or an unknown
// category.
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
	if err := r.validateOffer(); err != nil {
		return err
	}
	for _, glob := range []string{r.Tool, r.Source, r.Server, r.Client, r.Group, r.Prompt, r.Resource} {
		if !doublestar.ValidatePattern(glob) {
			return fmt.Errorf("%q is not a valid glob", glob)
		}
	}
	if err := r.validateAnnotations(); err != nil {
		return err
	}
	path := r.Path
	if !r.isNarrow() {
		path = text.Folded(path)
	}
	r.literals = literalsOf(path)
	r.toolPrefix, r.groupPrefix, r.compiled = literalPrefix(r.Tool), literalPrefix(r.Group), true
	if r.Resource != "" {
		r.resources = uri.Patterns(r.Resource)
	}
	return nil
}

// prefixes returns what the names of tools and groups that match begin with.
func (r *Rule) prefixes() (tool, group string) {
	if r.compiled {
		return r.toolPrefix, r.groupPrefix
	}
	return literalPrefix(r.Tool), literalPrefix(r.Group)
}

// AllowsByName reports whether the rule loosens, is the person's, and knows a tool by a plain name
// or glob alone, which is this name.
func (r *Rule) AllowsByName(name string) bool {
	return r.isNarrow() && r.Personal && r.Tool != "" && r.Tool != "*" && r.Server+r.Source == "" && text.MatchName(r.Tool, name)
}

// isNarrow reports whether the rule loosens. Such a rule must not match in case of
// doubt.
func (r *Rule) isNarrow() bool { return r.Decision == Allow || r.Decision == Sandbox }
