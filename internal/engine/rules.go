package engine

import (
	"cmp"
	"fmt"

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
	rule := policy.Rule{Tool: registry.NameIn(r.Tool), Source: r.Source, Server: r.Server, Category: r.Category, Annotations: r.Annotations, Command: r.Command, Path: r.Path, Client: r.Client, Group: r.Group, Profile: r.Profile, Layer: r.Layer, Prompt: r.Prompt, Resource: r.Resource,
		Reason: r.Reason, Origin: r.Origin.String(), Personal: r.Origin.Scope != settings.ScopeProject}
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
