package policy

import (
	"context"
	"testing"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/registry"
)

// The rules of the caller's profile go before all others, but for denials of files that are read
// before theirs.
func TestRulesOfProfile(t *testing.T) {
	rules := []Rule{
		{Path: "asked/other", Decision: Allow, Profile: "other", Layer: 2},
		{Path: "{asked,asked/denied}/**", Decision: Allow, Profile: "p", Layer: 2},
		{Path: "asked/*", Decision: Allow, Profile: "p", Layer: 2},
		{Path: "open/secret", Decision: Ask, Profile: "p", Layer: 2},
		{Tool: "run_shell_command", Command: "git", Decision: Allow, Profile: "p", Layer: 2},
		{Tool: "run_shell_command", Command: "ls", Decision: Ask, Profile: "p", Layer: 2},
		{Path: "asked/denied", Decision: Deny, Layer: 1},
		{Path: "asked/later", Decision: Deny, Layer: 3},
		{Path: "asked/same", Decision: Deny, Layer: 2},
		{Path: "asked/**", Decision: Ask, Layer: 1},
		{Path: "open/**", Decision: Allow, Layer: 1},
		{Tool: "run_shell_command", Command: "git push", Decision: Deny, Layer: 1},
		{Tool: "run_shell_command", Command: "git", Decision: Ask, Layer: 1},
		{Tool: "run_shell_command", Command: "ls", Decision: Allow, Layer: 1},
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
		{"denied in the same file", path("asked/same"), Deny, Allow},
		{"denied later", path("asked/later"), Deny, Allow},
		{"another profile", path("elsewhere/a"), Ask, Ask},
		{"stricter", path("open/secret"), Allow, Ask},
		{"not about it", path("open/a"), Allow, Allow},
		{"command loosened", shellTool("git status"), Ask, Allow},
		{"command denied before", shellTool("git status && git push"), Deny, Deny},
		{"command perhaps denied before", shellTool("git $x"), Ask, Ask},
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
		{Path: "{asked,denied}/open", Decision: Allow, Profile: "p", Layer: 2},
		{Path: "secret", Decision: Ask, Profile: "p", Layer: 2},
		{Path: "asked/**", Decision: Ask, Layer: 1},
		{Tool: "grep", Decision: Allow, Layer: 1},
		{Path: "denied/**", Decision: Deny, Layer: 1},
	}}
	ctx := caller.With(context.Background(), &caller.Caller{Profile: "p"})
	v := p.Decide(ctx, pathTool("grep", registry.CategoryRead, "."), registry.Call{})
	if v.Hides == nil {
		t.Fatal("nothing is hidden")
	}
	for path, want := range map[string]bool{"asked/a": true, "asked/open": false, "denied/open": true, "secret": true, "a": false} {
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

// A rule that denies because its expression failed says so.
func TestFailedConditionIsTold(t *testing.T) {
	when, err := jq.Compile(`error("no")`)
	if err != nil {
		t.Fatal(err)
	}
	p := &Policy{Rules: []Rule{{Decision: Deny, When: when, Reason: "not today"}}}
	v := p.Decide(t.Context(), mcpTool("s", "t", "t"), registry.Call{Params: []byte("{}")})
	if want := "not today; its condition counts as met because when failed: error: no"; v.Decision != Deny || v.Reason != want {
		t.Errorf("%v: %s, want %s", v.Decision, v.Reason, want)
	}
}

// Rules that are not of a profile are read in order, whatever their files.
func TestOnlyProfilesYieldToLaterRules(t *testing.T) {
	p := &Policy{Rules: []Rule{{Layer: 2, Decision: Allow}, {Layer: 1, Decision: Deny}}}
	if v := p.Decide(t.Context(), pathTool("write_file", registry.CategoryWrite, "a"), registry.Call{}); v.Decision != Allow {
		t.Errorf("%s (%s)", v.Decision, v.Reason)
	}
}
