package policy

import (
	"context"
	"testing"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
)

// The rules of the caller's profile go before those that are read before them, but for what
// these deny.
func TestRulesOfProfile(t *testing.T) {
	rules := []Rule{
		{Path: "asked/denied", Decision: Deny},
		{Path: "asked/**", Decision: Ask},
		{Path: "open/**", Decision: Allow},
		{Tool: "run_shell_command", Command: "git push", Decision: Deny},
		{Tool: "run_shell_command", Command: "git", Decision: Ask},
		{Tool: "run_shell_command", Command: "ls", Decision: Allow},
		{Path: "asked/other", Decision: Allow, Profile: "other"},
		{Path: "{asked,asked/denied}/**", Decision: Allow, Profile: "p"},
		{Path: "asked/*", Decision: Allow, Profile: "p"},
		{Path: "open/secret", Decision: Ask, Profile: "p"},
		{Tool: "run_shell_command", Command: "git", Decision: Allow, Profile: "p"},
		{Tool: "run_shell_command", Command: "ls", Decision: Ask, Profile: "p"},
	}
	path := func(p string) *registry.Tool { return pathTool("write_file", registry.CategoryWrite, p) }
	for _, tt := range []struct {
		name    string
		tool    *registry.Tool
		without Decision
		with    Decision
	}{
		{"loosened", path("asked/a"), Ask, Allow},
		{"denied before", path("asked/denied"), Deny, Deny},
		{"another profile", path("elsewhere/a"), Ask, Ask},
		{"stricter", path("open/secret"), Allow, Ask},
		{"not about it", path("open/a"), Allow, Allow},
		{"command loosened", shellTool("git status"), Ask, Allow},
		{"command denied before", shellTool("git status && git push"), Deny, Deny},
		{"command stricter", shellTool("ls"), Allow, Ask},
	} {
		for profile, want := range map[string]Decision{"": tt.without, "p": tt.with} {
			p := &Policy{Shell: "bash", Workspace: "/w", Rules: rules}
			ctx := caller.With(context.Background(), &caller.Caller{Name: "a", Profile: profile})
			if v := p.Decide(ctx, tt.tool, registry.Call{}); v.Decision != want {
				t.Errorf("%s, profile %q: got %v (%s), want %v", tt.name, profile, v.Decision, v.Reason, want)
			}
		}
	}
}

// What a rule of the profile allows is shown, and what one asks about is not.
func TestProfileHides(t *testing.T) {
	p := &Policy{Workspace: "/w", Rules: []Rule{
		{Path: "asked/**", Decision: Ask},
		{Tool: "grep", Decision: Allow},
		{Path: "asked/open", Decision: Allow, Profile: "p"},
		{Path: "secret", Decision: Ask, Profile: "p"},
	}}
	ctx := caller.With(context.Background(), &caller.Caller{Profile: "p"})
	v := p.Decide(ctx, pathTool("grep", registry.CategoryRead, "."), registry.Call{})
	if v.Hides == nil {
		t.Fatal("nothing is hidden")
	}
	for path, want := range map[string]bool{"asked/a": true, "asked/open": false, "secret": true, "a": false} {
		if got := v.Hides(path); got != want {
			t.Errorf("%s is hidden: %t", path, got)
		}
	}
}

// What was remembered for a caller is not used for one whose groups, name or profile differ.
func TestCallersAreTold(t *testing.T) {
	p := &Policy{Callers: &Callers{}, Rules: []Rule{
		{Group: "a:b", Decision: Deny},
		{Client: "eve", Decision: Deny},
		{Profile: "p", Decision: Deny},
	}}
	for range 2 {
		for _, tt := range []struct {
			who  *caller.Caller
			want Decision
		}{
			{nil, Ask},
			{&caller.Caller{Name: "a", Groups: []string{"a", "b"}}, Ask},
			{&caller.Caller{Name: "a", Groups: []string{"a:b"}}, Deny},
			{&caller.Caller{Name: "a", Groups: []string{"1:a"}}, Ask},
			{&caller.Caller{Name: "eve"}, Deny},
			{&caller.Caller{Profile: "eve"}, Ask},
			{&caller.Caller{Profile: "p"}, Deny},
			{&caller.Caller{Name: "p"}, Ask},
		} {
			v := p.Decide(caller.With(t.Context(), tt.who), mcpTool("s", "t", "t"), registry.Call{})
			if v.Decision != tt.want {
				t.Errorf("%+v: %v (%s)", tt.who, v.Decision, v.Reason)
			}
		}
	}
	p.Callers = &Callers{}
	for i := range maxCallers + 1 {
		if n := len(p.Callers.rules); n != i {
			t.Fatalf("%d of %d callers are remembered", n, i)
		}
		p.Decide(caller.With(t.Context(), &caller.Caller{Name: string(rune('a' + i))}), mcpTool("s", "t", "t"), registry.Call{})
	}
	if n := len(p.Callers.rules); n != 1 {
		t.Errorf("%d callers are remembered after too many", n)
	}
}

// A rule about a server is about no other one, and an explanation says whom a rule is about.
func TestRulesAboutOthers(t *testing.T) {
	tool, p := mcpTool("github", "t", "t"), &Policy{}
	for unmet, r := range map[string]Rule{
		conditionServer: {Server: "bank"}, conditionProfile: {Profile: "p"}, conditionClient: {Client: "eve"}, conditionGroup: {Group: "ops"},
	} {
		r.Decision = Deny
		p.Rules = []Rule{r}
		for _, who := range []*caller.Caller{nil, {Name: "a", Profile: "q", Groups: []string{"dev"}}} {
			ctx := caller.With(t.Context(), who)
			if v := p.Decide(ctx, tool, registry.Call{}); v.Decision != Ask {
				t.Errorf("%+v, %+v: %s", r, who, v.Reason)
			}
			reports, err := p.Explain(ctx, tool, registry.Call{})
			if err != nil || len(reports) != 1 || reports[0].Matches || reports[0].Unmet != unmet {
				t.Errorf("%+v, %+v: %+v, %v", r, who, reports, err)
			}
		}
	}
}
