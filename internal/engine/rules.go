package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// policyRules are the compiled rules of the settings.
type policyRules struct {
	set *settings.Settings
	all []policy.Rule
}

// compileRules compiles the rules in their order: exclusions deny before anything
// allows; then the rules of the settings, then allowedTools. The error is a
// *settings.Error with all mistakes. evaluator evaluates the conditions of projects;
// see [jq.Expression.Apart].
func compileRules(set *settings.Settings, evaluator []string) (*policyRules, error) {
	var problems []document.Problem
	out := entryRules(nil, set.ExcludeTools, policy.Deny, &problems)
	names := canonical()
	for _, r := range set.Rules {
		rule, err := compileRule(r, names)
		if err != nil {
			problems = append(problems, problemAt(r.Origin, err.Error()))
		}
		if r.Origin.Scope == settings.ScopeProject {
			rule.When = rule.When.Apart(evaluator)
		}
		out = append(out, rule)
	}
	out = entryRules(out, set.AllowedTools, policy.Allow, &problems)
	return &policyRules{set, out}, settings.NewError(problems)
}

// entryRules appends a rule for each entry of a list such as excludeTools.
func entryRules(out []policy.Rule, list settings.List, decision policy.Decision, problems *[]document.Problem) []policy.Rule {
	for i, e := range list.Sourced() {
		r, err := policy.EntryRule(e, decision)
		if err != nil {
			*problems = append(*problems, problemAt(list.Entries[i].Origin, err.Error()))
			continue
		}
		r.Personal = list.Entries[i].Origin.Scope != settings.ScopeProject
		out = append(out, r)
	}
	return out
}

func compileRule(r settings.Rule, canonical func(string) string) (policy.Rule, error) {
	rule := policy.Rule{
		Tool: registry.NameIn(r.Tool), Source: r.Source, Server: r.Server, Category: r.Category,
		Annotations: r.Annotations, Command: r.Command, Path: r.Path, Client: r.Client, Group: r.Group,
		Profile: r.Profile, Layer: r.Layer, Prompt: r.Prompt, Resource: r.Resource,
		Reason: r.Reason, Origin: r.Origin.String(), Personal: r.Origin.Scope != settings.ScopeProject,
	}
	var err error
	if rule.Decision, err = policy.ParseDecision(r.Decision); err != nil {
		return rule, err
	}
	if r.When != "" {
		if rule.When, err = jq.Compile(r.When); err != nil {
			return rule, fmt.Errorf("when %q is %w", r.When, err)
		}
	}
	if err = rule.Compile(); err != nil {
		return rule, err
	}
	return rule, rule.ValidateSandbox(canonical)
}

func problemAt(o settings.Origin, message string) document.Problem {
	return document.Problem{File: cmp.Or(o.Name, o.String()), Line: o.Line, Col: o.Col, Message: message}
}

// canonical returns a function that resolves a name or an alias to the name of a built-in
// tool.
func canonical() func(string) string {
	names := builtin.Aliases()
	for _, name := range builtin.Names() {
		names[name] = name
	}
	return func(name string) string { return names[name] }
}

// CheckExamples checks the rules against their example calls, which they must match
// (match) or not match (notMatch). builtin is the source of the built-in tools, shell the
// grammar of shell commands. The error is a *settings.Error with all examples that fail.
func (r *policyRules) CheckExamples(ctx context.Context, builtin registry.Source, shell string) error {
	if !slices.ContainsFunc(r.set.Rules, func(r settings.Rule) bool { return len(r.Match)+len(r.NotMatch) > 0 }) {
		return nil
	}
	c := &exampleCheck{policy: &policy.Policy{Canonical: canonical(), Workspace: r.set.Workspace, Shell: shell}}
	c.builtin, _, _ = builtin.Discover(ctx)
	first := len(r.all) - len(r.set.AllowedTools.Entries) - len(r.set.Rules)
	for i, set := range r.set.Rules {
		rule := &r.all[first+i]
		for _, example := range set.Match {
			c.check(ctx, rule, example, true)
		}
		for _, example := range set.NotMatch {
			c.check(ctx, rule, example, false)
		}
	}
	return settings.NewError(c.problems)
}

// exampleCheck checks example calls and collects what is wrong.
type exampleCheck struct {
	policy   *policy.Policy
	builtin  []registry.Tool
	problems []document.Problem
}

func (c *exampleCheck) check(ctx context.Context, r *policy.Rule, example settings.ExampleCall, want bool) {
	tool := c.tool(r, cmp.Or(example.Tool, shellTool))
	params := example.Params
	if example.Line != "" {
		params, _ = json.Marshal(map[string]string{"command": example.Line})
	}
	if params == nil {
		params = json.RawMessage("{}")
	}
	got, err := c.policy.Matches(ctx, r, tool, registry.Call{Tool: tool.Name, Params: params})
	about := example.Line
	if example.Line == "" {
		about = strings.TrimSpace(example.Tool + " " + string(example.Params))
	}
	list := map[bool]string{true: "match", false: "notMatch"}[want]
	switch {
	case err != nil:
		c.problems = append(c.problems, problemAt(example.Origin, fmt.Sprintf("%s: the rule cannot be checked with %q: %s", list, about, err)))
	case got && !want:
		c.problems = append(c.problems, problemAt(example.Origin, fmt.Sprintf("%s: the rule matches %q", list, about)))
	case want && !got:
		c.problems = append(c.problems, problemAt(example.Origin, fmt.Sprintf("%s: the rule does not match %q", list, about)))
	}
}

const shellTool = "run_shell_command"

// tool returns the tool of an example: the built-in tool with that name, or else one with
// that name from the source that the rule names. An example has no category and no
// annotations, so they are assumed to be the rule's.
func (c *exampleCheck) tool(r *policy.Rule, name string) *registry.Tool {
	builtin := c.policy.Canonical(name)
	for i := range c.builtin {
		if c.builtin[i].Name == builtin {
			return &c.builtin[i]
		}
	}
	t := &registry.Tool{Trusted: true, Definition: registry.Definition{Name: name, Source: r.Source, Category: registry.Category(r.Category)}}
	if len(r.Annotations) > 0 {
		t.Annotations, _ = json.Marshal(r.Annotations) // cannot fail for booleans
	}
	server, plain, qualified := strings.Cut(name, "__")
	switch {
	case qualified:
		t.Server, t.ServerTool = server, plain
	case r.Server != "":
		t.Server, t.ServerTool = r.Server, name
	case r.Source == "":
		t.Source = registry.SourceCommand
	}
	if t.Server != "" && !strings.HasPrefix(t.Source, registry.APIPrefix) {
		t.Source = registry.MCPPrefix + t.Server
	}
	return t
}
