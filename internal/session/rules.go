package session

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// compileRules makes the rules of policy, in their order: exclusions deny before
// anything allows; then the rules of the settings, then allowedTools. The error
// is a *settings.Error with all mistakes.
func compileRules(set *settings.Settings) ([]policy.Rule, error) {
	var problems []document.Problem
	out := entryRules(nil, set.ExcludeTools, policy.Deny, &problems)
	names := canonical()
	for _, r := range set.Rules {
		rule, err := compileRule(r, names)
		if err != nil {
			problems = append(problems, problemAt(r.Origin, err.Error()))
		}
		out = append(out, rule)
	}
	out = entryRules(out, set.AllowedTools, policy.Allow, &problems)
	return out, settings.NewError(problems)
}

// entryRules appends a rule for each entry of a list such as excludeTools.
func entryRules(out []policy.Rule, list settings.List, decision policy.Decision, problems *[]document.Problem) []policy.Rule {
	for i, e := range list.Sourced() {
		r, err := policy.EntryRule(e, decision)
		if err != nil {
			*problems = append(*problems, problemAt(list.Entries[i].Origin, err.Error()))
			continue
		}
		out = append(out, r)
	}
	return out
}

func compileRule(r settings.Rule, canonical func(string) string) (policy.Rule, error) {
	rule := policy.Rule{Tool: r.Tool, Source: r.Source, Server: r.Server, Category: r.Category, Command: r.Command, Path: r.Path,
		Reason: r.Reason, Origin: r.Origin.String()}
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

// checkExamples compares the rules with the example calls that they must match,
// and must not match. The error is a *settings.Error with all that differ.
func (s *Session) checkExamples(ctx context.Context) error {
	if !slices.ContainsFunc(s.set.Rules, func(r settings.Rule) bool { return len(r.Match)+len(r.NotMatch) > 0 }) {
		return nil
	}
	c := &exampleCheck{policy: &policy.Policy{Canonical: canonical(), Workspace: s.set.Workspace, Shell: s.shell()}}
	c.builtin, _, _ = s.sources.local[0].Discover(ctx)
	first := len(s.rules) - len(s.set.AllowedTools.Entries) - len(s.set.Rules)
	for i, r := range s.set.Rules {
		rule := &s.rules[first+i]
		for _, example := range r.Match {
			c.check(ctx, rule, example, true)
		}
		for _, example := range r.NotMatch {
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

// tool returns the tool of an example: a built-in one as it is, else one with the
// given name from where the rule says. What an example does not tell, the
// category, is taken to be what the rule wants.
func (c *exampleCheck) tool(r *policy.Rule, name string) *registry.Tool {
	builtin := c.policy.Canonical(name)
	for i := range c.builtin {
		if c.builtin[i].Name == builtin {
			return &c.builtin[i]
		}
	}
	t := &registry.Tool{Trusted: true, Definition: registry.Definition{Name: name, Source: r.Source, Category: registry.Category(r.Category)}}
	server, plain, qualified := strings.Cut(name, "__")
	switch {
	case qualified:
		t.Server, t.ServerTool = server, plain
	case r.Server != "":
		t.Server, t.ServerTool = r.Server, name
	case r.Source == "":
		t.Source = registry.SourceCommand
	}
	if t.Server != "" {
		t.Source = registry.MCPPrefix + t.Server
	}
	return t
}
