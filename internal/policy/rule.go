package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Decision says whether a call may run. The zero value is Ask, so that a missing
// decision never allows.
type Decision int

// The possible decisions.
const (
	Ask Decision = iota
	Allow
	Deny
	// Sandbox runs a call in the sandbox, without asking. Only rules make this
	// decision; if the sandbox is unavailable, it becomes Ask.
	Sandbox
)

// decisions are the names of the decisions, as used in settings.
func decisions() []string {
	return []string{Ask: "ask", Allow: "allow", Deny: "deny", Sandbox: "sandbox"}
}

// String returns the name of the decision.
func (d Decision) String() string { return decisions()[d] }

// MarshalJSON encodes the decision as its name.
func (d Decision) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// ParseDecision parses the name of a decision.
func ParseDecision(s string) (Decision, error) {
	if d := slices.Index(decisions(), s); d >= 0 {
		return Decision(d), nil
	}
	return Deny, fmt.Errorf("unknown decision %q; use allow, sandbox, ask or deny", s)
}

// stricter returns the stricter of two decisions.
func stricter(a, b Decision) Decision {
	order := []Decision{Allow, Sandbox, Ask, Deny}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

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
	Personal    bool   // not from a project's settings
}

// The conditions of a rule, by their keys in the settings.
const (
	conditionTool        = "tool"
	conditionSource      = "source"
	conditionServer      = "server"
	conditionCategory    = "category"
	conditionAnnotations = "annotations"
	conditionClient      = "client"
	conditionGroup       = "group"
	conditionProfile     = "profile"
	conditionPrompt      = "prompt"
	conditionResource    = "resource"
	conditionCommand     = "command"
	conditionPath        = "path"
	conditionWhen        = "when"
)

// Validate returns an error if a condition is invalid: a command that is not plain words, a
// malformed glob or an unknown category.
func (r *Rule) Validate() error {
	if r.Command != "" && !shell.IsPlain(r.Command) {
		return fmt.Errorf("command %q must be plain words, the beginning of a simple command", r.Command)
	}
	if r.Category != "" && !registry.Category(r.Category).Valid() {
		return fmt.Errorf("unknown category %q; use read, write, command, network or other", r.Category)
	}
	if err := r.validateOffer(); err != nil {
		return err
	}
	for _, c := range [][2]string{{conditionPath, r.Path}, {conditionTool, r.Tool}, {conditionSource, r.Source},
		{conditionServer, r.Server}, {conditionClient, r.Client}, {conditionGroup, r.Group},
		{conditionPrompt, r.Prompt}, {conditionResource, r.Resource}} {
		if !doublestar.ValidatePattern(c[1]) {
			return fmt.Errorf("%s %q is not a valid glob", c[0], c[1])
		}
	}
	return r.validateAnnotations()
}

// AllowsByName reports whether the rule loosens, is not a project's, and names tools only by a
// plain name or glob that matches name.
func (r *Rule) AllowsByName(name string) bool {
	return r.isNarrow() && r.Personal && r.Tool != "" && r.Tool != "*" &&
		r.Server+r.Source == "" && text.MatchName(r.Tool, name)
}

// isNarrow reports whether the rule loosens. Such a rule must not match in case of
// doubt.
func (r *Rule) isNarrow() bool { return r.Decision == Allow || r.Decision == Sandbox }

// Entry is one parsed element of allowedTools or excludeTools: "read_file",
// "mcp_*", "run_shell_command(git status)", "ShellTool(rm)".
type Entry struct {
	Tool    string // name, alias or glob
	Command string // the text in parentheses; "" if there are none
}

// ParseEntry parses one element of allowedTools or excludeTools. It accepts ":*"
// at the end of the text in parentheses, as other programs write it, and ignores
// it.
func ParseEntry(text string) (Entry, error) {
	text = strings.TrimSpace(text)
	name, rest, found := strings.Cut(text, "(")
	e := Entry{Tool: registry.NameIn(name)}
	if e.Tool == "" {
		return Entry{}, fmt.Errorf("entry %q does not name a tool", text)
	}
	if !found {
		if strings.ContainsRune(text, ')') {
			return Entry{}, fmt.Errorf("entry %q has a closing parenthesis without an opening one", text)
		}
		return e, nil
	}
	args, ok := strings.CutSuffix(rest, ")")
	if !ok {
		return Entry{}, fmt.Errorf("entry %q lacks a closing parenthesis", text)
	}
	e.Command = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(args), ":*"))
	if e.Command == "*" {
		e.Command = ""
		return e, nil
	}
	if e.Command == "" {
		return Entry{}, fmt.Errorf("entry %q has empty parentheses; leave them out to mean the tool itself", text)
	}
	if !shell.IsPlain(e.Command) {
		return Entry{}, fmt.Errorf("entry %q: the command must be plain words, the beginning of a simple command", text)
	}
	return e, nil
}

// EntryRule returns the rule for an element of allowedTools (decision Allow) or of
// excludeTools (decision Deny).
func EntryRule(entry registry.Entry, decision Decision) (Rule, error) {
	e, err := ParseEntry(entry.Value)
	if err != nil {
		return Rule{}, err
	}
	r := Rule{Tool: e.Tool, Command: e.Command, Decision: decision, Origin: entry.Setting}
	switch decision {
	case Allow:
		r.Reason = fmt.Sprintf("allowedTools names %q", entry.Value)
	case Deny:
		r.Reason = fmt.Sprintf("excludeTools names %q", entry.Value)
	}
	return r, nil
}

// absentHint returns the value that MCP (revision 2025-11-25) gives to a tool without
// a boolean annotation, and whether there is an annotation of this name.
func absentHint(name string) (value, ok bool) {
	switch name {
	case "readOnlyHint", "idempotentHint":
		return false, true
	case "destructiveHint", "openWorldHint":
		return true, true
	}
	return false, false
}

// validateAnnotations returns an error if the condition has an unknown name, or if a
// rule that loosens does not name one server: annotations are what a server says of
// itself, so they allow nothing unless a person trusts this server.
func (r *Rule) validateAnnotations() error {
	if r.Annotations != nil && len(r.Annotations) == 0 {
		return errors.New("annotations is empty; give it a value or remove it")
	}
	for name := range r.Annotations {
		if _, ok := absentHint(name); !ok {
			return fmt.Errorf(
				"unknown annotation %q; use readOnlyHint, destructiveHint, idempotentHint or openWorldHint", name)
		}
	}
	if len(r.Annotations) > 0 && r.isNarrow() && (r.Server == "" || strings.ContainsAny(r.Server, `*?[{\`)) {
		return errors.New("a rule that allows by annotations must name one server with the key server, because every server can claim any annotation")
	}
	return nil
}

// isForSome reports whether the rule is about certain callers.
func (r *Rule) isForSome() bool { return r.Client != "" || r.Group != "" }

// unmetCaller returns the first condition that the caller does not meet; nil is the person at the
// command line. With any, the caller may have any name and groups.
func (r *Rule) unmetCaller(who *caller.Caller, any bool) string {
	if who == nil {
		who = &caller.Caller{}
	}
	match := r.matcher()
	switch {
	case r.Profile != "" && r.Profile != who.Profile:
		return conditionProfile
	case any || !r.isForSome():
		return ""
	case r.Client != "" && !match(r.Client, who.Name):
		return conditionClient
	case r.Group != "" && !slices.ContainsFunc(who.Groups,
		func(group string) bool { return match(r.Group, group) }):
		return conditionGroup
	}
	return ""
}

// matcher returns the function that matches the rule's globs. No glob matches the empty name.
func (r *Rule) matcher() func(pattern, name string) bool {
	match := text.MatchNameFold
	if r.isNarrow() {
		match = text.MatchName
	}
	return func(pattern, name string) bool { return name != "" && match(pattern, name) }
}

// isAboutOffers reports whether a rule can match a prompt or a resource.
func (r *Rule) isAboutOffers() bool {
	return r.Tool+r.Command+r.Path == "" && len(r.Annotations) == 0 && r.When == nil
}

// validateOffer returns an error if the rule names prompts or resources together with what
// only tools have, or with a decision that only calls can have.
func (r *Rule) validateOffer() error {
	switch {
	case r.Prompt+r.Resource == "":
		return nil
	case r.Prompt != "" && r.Resource != "":
		return errors.New("a rule is about prompts or about resources; write one for each")
	case !r.isAboutOffers():
		return errors.New("a rule about prompts or resources cannot have conditions on tools (tool, command, path, annotations, when)")
	case r.Decision == Sandbox:
		return errors.New("a rule about prompts or resources must allow, ask or deny")
	}
	return nil
}

// decidingRule returns the matching rule that decides; nil if none matches.
func decidingRule(rules []*Rule, matches func(*Rule) bool) *Rule {
	for i, r := range rules {
		if matches(r) {
			return prevailing(rules[i:], matches)
		}
	}
	return nil
}

// prevailing returns the rule that decides if the first of rules matches. A rule of the caller's
// profile does not loosen a denial from a file that is read before the profile's.
func prevailing(rules []*Rule, matches func(*Rule) bool) *Rule {
	first := rules[0]
	if first.Profile != "" && first.Decision != Deny {
		for _, r := range rules[1:] {
			if r.Decision == Deny && r.Layer < first.Layer && matches(r) {
				return r
			}
		}
	}
	return first
}
