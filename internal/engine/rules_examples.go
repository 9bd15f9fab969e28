package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

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
