// Package rules compiles the settings about calls (excludeTools, policy.rules and allowedTools) to
// the rules of package policy, and checks them against their example calls. It knows no session.
package rules

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/text"
)

// ShellTool is the tool whose commands lists such as excludeTools can have in parentheses.
const ShellTool = "run_shell_command"

// Rules are the compiled rules of settings.
type Rules struct {
	All  []policy.Rule // in the order in which they are tried; must not be changed
	Core []policy.Limit

	set *settings.Settings
}

// Compile compiles the rules in their order: exclusions deny before anything
// allows; then the rules of the settings, then allowedTools. The error is a
// *document.Error with all mistakes. lookup finds the variables in paths. evaluator evaluates the
// conditions of projects; see [jq.Expression.Isolated].
func Compile(set *settings.Settings, lookup expand.Lookup, evaluator []string) (*Rules, error) {
	var problems []document.Problem
	out := entryRules(nil, set.ExcludeTools, policy.Deny, &problems)
	names := builtin.Canonical()
	for _, r := range set.Rules {
		rule, err := compileRule(r, lookup, names)
		if err != nil {
			problems = append(problems, r.Origin.Problem(err.Error(), ""))
		}
		if r.Origin.Scope == settings.ScopeProject {
			rule.When = rule.When.Isolated(evaluator)
		}
		out = append(out, rule)
	}
	out = entryRules(out, set.AllowedTools, policy.Allow, &problems)
	compiled := &Rules{All: out, set: set}
	for _, only := range []struct {
		setting string
		list    settings.List
	}{{"coreTools", set.CoreTools}, {"tools.only", set.OnlyTools}} {
		if commands := coreCommands(only.setting, only.list, names, &problems); commands != nil {
			compiled.Core = append(compiled.Core, policy.Limit{Setting: only.setting, Commands: commands})
		}
	}
	return compiled, document.NewError(problems)
}

// coreCommands returns the commands to which a list of allowed tools limits the shell tool. It
// returns none if the list also has the shell tool without a command.
func coreCommands(setting string, list settings.List, names func(string) string,
	problems *[]document.Problem) (out []policy.Rule) {
	for i, e := range list.Sourced() {
		name, _, _ := strings.Cut(registry.NameIn(e.Value), "(")
		if names(name) != ShellTool && !(text.IsGlob(name) && text.MatchName(name, ShellTool)) {
			continue
		}
		r, err := policy.EntryRule(e, policy.Deny)
		switch {
		case err != nil:
			*problems = append(*problems, list.Entries[i].Origin.Problem(setting+": "+err.Error(), ""))
		case r.Command == "":
			return nil
		}
		out = append(out, r)
	}
	return out
}

// entryRules appends a rule for each entry of a list such as excludeTools.
func entryRules(out []policy.Rule, list settings.List,
	decision policy.Decision, problems *[]document.Problem) []policy.Rule {
	for i, e := range list.Sourced() {
		r, err := policy.EntryRule(e, decision)
		if err != nil {
			*problems = append(*problems, list.Entries[i].Origin.Problem(err.Error(), ""))
			continue
		}
		r.Personal = list.Entries[i].Origin.Scope != settings.ScopeProject
		out = append(out, r)
	}
	return out
}

// expandPath replaces ~ and variables in the path of a rule. Glob characters in their values match
// literally.
func expandPath(glob string, lookup expand.Lookup) (string, error) {
	quoted := func(name string) (string, bool) {
		value, err := lookup.Value(name)
		if filepath.Separator == '/' { // elsewhere, a path in a rule cannot be quoted
			value = policy.QuoteGlob(value)
		}
		return value, err == nil
	}
	out, err := expand.Word(glob, quoted)
	if err != nil {
		return "", fmt.Errorf("path %q: %w; $$ is a dollar sign", glob, err)
	}
	return out, nil
}

func compileRule(r settings.Rule, lookup expand.Lookup, canonical func(string) string) (policy.Rule, error) {
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
	if rule.Path, err = expandPath(r.Path, lookup); err != nil {
		return rule, err
	}
	if r.When != "" {
		if rule.When, err = jq.Compile(r.When); err != nil {
			return rule, fmt.Errorf("when %q is %w", r.When, err)
		}
	}
	if err = rule.Validate(); err != nil {
		return rule, err
	}
	return rule, rule.ValidateSandbox(canonical)
}

// CheckExamples checks the rules against their example calls, which they must match
// (match) or not match (notMatch). tools is the source of the built-in tools, shell the
// grammar of shell commands. The error is a *document.Error with all examples that fail.
func (r *Rules) CheckExamples(ctx context.Context, tools registry.Source, shell string) error {
	if !slices.ContainsFunc(r.set.Rules, func(r settings.Rule) bool { return len(r.Match)+len(r.NotMatch) > 0 }) {
		return nil
	}
	c := &exampleCheck{policy: &policy.Policy{Canonical: builtin.Canonical(), Workspace: r.set.Workspace, Shell: shell}}
	c.builtin, _, _ = tools.Discover(ctx)
	first := len(r.All) - len(r.set.AllowedTools.Entries) - len(r.set.Rules)
	for i, set := range r.set.Rules {
		rule := &r.All[first+i]
		for _, example := range set.Match {
			c.check(ctx, rule, example, true)
		}
		for _, example := range set.NotMatch {
			c.check(ctx, rule, example, false)
		}
	}
	return document.NewError(c.problems)
}

// exampleCheck checks example calls and collects what is wrong.
type exampleCheck struct {
	policy   *policy.Policy
	builtin  []registry.Tool
	problems []document.Problem
}

func (c *exampleCheck) check(ctx context.Context, r *policy.Rule, example settings.ExampleCall, want bool) {
	tool := c.tool(r, cmp.Or(example.Tool, ShellTool))
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
	fail := func(format string, args ...any) {
		c.problems = append(c.problems, example.Origin.Problem(fmt.Sprintf(format, args...), ""))
	}
	switch {
	case err != nil:
		fail("%s: the rule cannot be checked with %q: %s", list, about, err)
	case got && !want:
		fail("%s: the rule matches %q", list, about)
	case want && !got:
		fail("%s: the rule does not match %q", list, about)
	}
}

// tool returns the tool of an example: the built-in tool with that name, or else one with
// that name from the source that the rule names. An example has no category and no
// annotations, so they are assumed to be the rule's.
func (c *exampleCheck) tool(r *policy.Rule, name string) *registry.Tool {
	canonical := c.policy.Canonical(name)
	for i := range c.builtin {
		if c.builtin[i].Name == canonical {
			return &c.builtin[i]
		}
	}
	t := &registry.Tool{Trusted: true,
		Definition: registry.Definition{Name: name, Source: r.Source, Category: registry.Category(r.Category)}}
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
