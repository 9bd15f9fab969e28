package policy

import (
	"testing"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
)

// A search may show a file that a rule asks about only if that rule asked the
// person, and never a file that a rule denies.
func TestHides(t *testing.T) {
	rules := func() []Rule {
		return []Rule{
			{Tool: "grep", Path: "open/**", Decision: Allow},
			{Tool: "grep", Path: "drafts/**", Decision: Ask},
			{Tool: "grep", Path: "mail/**", Decision: Ask},
			{Path: "**/.env", Decision: Deny},
			{Tool: "other", Path: "src/**", Decision: Deny},
			{Command: "ls", Path: "src/**", Decision: Deny},
			{Path: "off/**", When: when(t, "false"), Decision: Deny},
		}
	}
	tests := []struct {
		name, searched string
		change         func(*Policy)
		hidden, shown  []string
	}{
		{"nothing asked", ".", func(*Policy) {}, []string{"drafts/a", "mail/a", "x/.env"}, []string{"a", "open/a", "open/.env", "src/a", "off/a"}},
		{"asked by a rule", "drafts/x", func(*Policy) {}, []string{"mail/a", "x/.env"}, []string{"drafts/a", "a"}},
		{"asked by another rule", "mail/x", func(*Policy) {}, []string{"drafts/a"}, []string{"mail/a"}},
		{"yolo agrees to what rules ask", ".", func(p *Policy) { p.Mode = ModeYolo }, []string{"x/.env"}, []string{"drafts/a", "mail/a"}},
		{"after a rule on every path", ".", func(p *Policy) {
			p.Rules = append([]Rule{{Tool: "grep", Path: "mail/**", Decision: Ask}, {Tool: "grep", Decision: Allow}}, p.Rules...)
		}, []string{"mail/a"}, []string{"drafts/a", "x/.env"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Policy{Rules: rules()}
			tt.change(&p)
			v := p.Decide(t.Context(), pathTool("grep", registry.CategoryRead, tt.searched), registry.Call{})
			if v.Hides == nil {
				t.Fatal("nothing is hidden")
			}
			for _, path := range tt.hidden {
				if !v.Hides(path) {
					t.Errorf("%s is shown", path)
				}
			}
			for _, path := range tt.shown {
				if v.Hides(path) {
					t.Errorf("%s is hidden", path)
				}
			}
		})
	}
	for name, p := range map[string]Policy{
		"no rule on paths":         {Rules: []Rule{{Decision: Deny}}},
		"only rules that allow":    {Rules: []Rule{{Path: "a", Decision: Allow}}},
		"rules on other tools":     {Rules: []Rule{{Path: "b", Decision: Allow}, {Tool: "x", Path: "a", Decision: Deny}}},
		"after a rule on the tool": {Rules: []Rule{{Tool: "grep", Decision: Allow}, {Path: "a", Decision: Deny}}},
	} {
		if v := p.Decide(t.Context(), pathTool("grep", registry.CategoryRead, "."), registry.Call{}); v.Hides != nil {
			t.Errorf("%s: something is hidden", name)
		}
	}
}

// Calls have the same key only if the same is hidden from them.
func TestHidesKey(t *testing.T) {
	key := func(p Policy, searched string) string {
		return p.Decide(t.Context(), pathTool("grep", registry.CategoryRead, searched), registry.Call{}).HidesKey
	}
	ask, deny := Rule{Path: "a/**", Decision: Ask}, Rule{Path: "a/**", Decision: Deny}
	seen := map[string]string{}
	for name, p := range map[string]Policy{
		"no rule": {}, "asks": {Rules: []Rule{ask}}, "denies": {Rules: []Rule{deny}}, "asks under yolo": {Rules: []Rule{ask}, Mode: ModeYolo},
		"another path": {Rules: []Rule{{Path: "b/**", Decision: Ask}}}, "another workspace": {Rules: []Rule{ask}, Workspace: "/w"},
		"allowed before": {Rules: []Rule{{Path: "a/b", Decision: Allow}, ask}}, "a rule with a condition": {Rules: []Rule{{Path: "c", Decision: Deny, When: when(t, "true")}, ask}},
	} {
		k := key(p, ".")
		if other, ok := seen[k]; ok {
			t.Errorf("%s and %s have the same key", name, other)
		}
		if seen[k] = name; key(p, ".") != k || (k == "") != (name == "no rule") {
			t.Errorf("%s: key %q", name, k)
		}
	}
	if p := (Policy{Rules: []Rule{ask}}); key(p, ".") == key(p, "a/x") {
		t.Error("a person who is asked about a folder sees no more than without the question")
	}
	if p := (Policy{Rules: []Rule{{Tool: "other", Path: "a", Decision: Deny}}}); key(p, ".") != "" {
		t.Error("rules about other tools count")
	}
}

// A rule on commands says nothing about the rules after it.
func TestHidesAfterRuleOnCommands(t *testing.T) {
	p := Policy{Rules: []Rule{{Command: "ls", Decision: Deny}, {Path: "**/.env", Decision: Deny}}}
	v := p.Decide(t.Context(), pathTool("grep", registry.CategoryRead, "."), registry.Call{})
	if v.Hides == nil || !v.Hides("x/.env") || v.Hides("x/a") {
		t.Errorf("%+v", v)
	}
}

// What a rule of the caller's profile opens, a rule that is read before it can keep hidden.
func TestHidesCredentials(t *testing.T) {
	opened := []Rule{{Path: ".", Decision: Allow}, {Profile: "ci", Path: "k", Layer: 2, Decision: Allow}}
	ctx := caller.With(t.Context(), &caller.Caller{Profile: "ci"})
	keys := map[string]string{}
	for name, tt := range map[string]struct {
		rules []Rule
		want  bool
	}{
		"by no rule":             {nil, true},
		"opened":                 {opened, false},
		"by another rule":        {append(opened[:1:1], Rule{Path: "other", Decision: Allow}), true},
		"opened after another":   {append([]Rule{{Path: "another", Decision: Allow}}, opened...), false},
		"by all rules":           {append(opened[:2:2], Rule{Layer: 1, Decision: Deny}), true},
		"not by that on another": {append(opened[:2:2], Rule{Path: "other", Layer: 1, Decision: Deny}), false},
	} {
		p := &Policy{Rules: tt.rules, Workspace: "/w", Credentials: guarding(func(path string) string {
			if path == "/w/k" {
				return "is a key"
			}
			return ""
		})}
		v := p.Decide(ctx, pathTool("grep", registry.CategoryRead, "."), registry.Call{})
		if v.Decision != Allow || v.Hides("k") != tt.want || v.Hides("a") {
			t.Errorf("%s: %s, hidden %t", name, v.Decision, v.Hides("k"))
		}
		if other, seen := keys[v.HidesKey]; seen {
			t.Errorf("%s hides as %s", name, other)
		}
		keys[v.HidesKey] = name
	}
}
