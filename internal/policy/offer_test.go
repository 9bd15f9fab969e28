package policy_test

import (
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

func TestDecideOffer(t *testing.T) {
	deny := func(r policy.Rule) policy.Rule { r.Decision = policy.Deny; return r }
	allow := func(r policy.Rule) policy.Rule { r.Decision = policy.Allow; return r }
	all := deny(policy.Rule{})
	review := policy.Offer{Server: "git", Prompt: "review", Name: "review"}
	second := policy.Offer{Server: "other", Prompt: "review", Name: "other__review"}
	file := func(uri string) policy.Offer { return policy.Offer{Server: "fs", URI: uri} }
	etc := deny(policy.Rule{Resource: "file:///etc/*"})
	docs := allow(policy.Rule{Resource: "file:///docs/*"})
	for _, tt := range []struct {
		name  string
		rules []policy.Rule
		offer policy.Offer
		want  policy.Decision
	}{
		{"no rule", nil, review, policy.Allow},
		{"all", []policy.Rule{all}, review, policy.Deny},
		{"a question about all has no effect", []policy.Rule{{Decision: policy.Ask}, all}, review, policy.Allow},
		{"a question", []policy.Rule{{Prompt: "REVIEW"}, all}, review, policy.Ask},
		{"a question about resources", []policy.Rule{{Resource: "file:///etc/*"}, all}, file("file:///docs/%2e%2e/etc/passwd"), policy.Ask},
		{"a question after an allowance", []policy.Rule{docs, {Resource: "*"}}, file("file:///docs/a"), policy.Allow},
		{"a denial before a profile", []policy.Rule{{Resource: "*", Decision: policy.Allow, Profile: "p", Layer: 2}, {Resource: "file:///etc/*", Decision: policy.Deny, Layer: 1}}, file("file:///etc/passwd"), policy.Deny},
		{"a denial beside a profile", []policy.Rule{{Resource: "*", Decision: policy.Allow, Profile: "p", Layer: 2}, {Resource: "file:///etc/*", Decision: policy.Deny, Layer: 2}}, file("file:///etc/passwd"), policy.Allow},
		{"server", []policy.Rule{deny(policy.Rule{Server: "GIT"})}, review, policy.Deny},
		{"another server", []policy.Rule{deny(policy.Rule{Server: "fs"})}, review, policy.Allow},
		{"source", []policy.Rule{deny(policy.Rule{Source: "mcp:*"})}, review, policy.Deny},
		{"source of tools", []policy.Rule{deny(policy.Rule{Source: "builtin"})}, review, policy.Allow},
		{"category", []policy.Rule{deny(policy.Rule{Category: "read"})}, review, policy.Deny},
		{"another category", []policy.Rule{deny(policy.Rule{Category: "write"})}, review, policy.Allow},
		{"tool", []policy.Rule{deny(policy.Rule{Tool: "*"}), deny(policy.Rule{Path: "**"}), deny(policy.Rule{Annotations: map[string]bool{"readOnlyHint": true}})}, review, policy.Allow},
		{"prompt", []policy.Rule{deny(policy.Rule{Prompt: "Rev*"})}, review, policy.Deny},
		{"prompts are not resources", []policy.Rule{deny(policy.Rule{Prompt: "*"})}, file("file:///a"), policy.Allow},
		{"resources are not prompts", []policy.Rule{deny(policy.Rule{Resource: "*"})}, review, policy.Allow},
		{"allowed by its name", []policy.Rule{allow(policy.Rule{Prompt: "review"}), all}, review, policy.Allow},
		{"allowed with its server", []policy.Rule{allow(policy.Rule{Prompt: "git__review"}), all}, review, policy.Allow},
		{"another server's of that name", []policy.Rule{allow(policy.Rule{Prompt: "review"}), all}, second, policy.Deny},
		{"named with its server", []policy.Rule{allow(policy.Rule{Server: "other", Prompt: "review"}), all}, second, policy.Allow},
		{"denied under any name", []policy.Rule{deny(policy.Rule{Prompt: "review"})}, second, policy.Deny},
		{"in another case", []policy.Rule{allow(policy.Rule{Prompt: "Review"}), all}, review, policy.Deny},
		{"resource", []policy.Rule{etc}, file("file:///etc/passwd"), policy.Deny},
		{"escaped", []policy.Rule{etc}, file("file:///%65tc/passwd"), policy.Deny},
		{"escaped twice", []policy.Rule{etc}, file("file:///%2565tc/passwd"), policy.Deny},
		{"with dots", []policy.Rule{etc}, file("file:///docs/../etc/passwd"), policy.Deny},
		{"with escaped dots", []policy.Rule{etc}, file("file:///docs/%2e%2e/etc/passwd"), policy.Deny},
		{"with double slashes", []policy.Rule{etc}, file("file:///docs//..//etc//passwd"), policy.Deny},
		{"scheme", []policy.Rule{etc}, file("FILE:///etc/passwd"), policy.Deny},
		{"very long", []policy.Rule{etc}, file("x:" + strings.Repeat("a", 65<<10)), policy.Deny},
		{"allowed resource", []policy.Rule{docs, all}, file("file:///docs/a"), policy.Allow},
		{"out of what is allowed", []policy.Rule{docs, all}, file("file:///docs/../etc/passwd"), policy.Deny},
		{"very long and allowed", []policy.Rule{allow(policy.Rule{Resource: "*"}), all}, file("x:" + strings.Repeat("a", 65<<10)), policy.Deny},
		{"client", []policy.Rule{deny(policy.Rule{Client: "ali*"})}, review, policy.Deny},
		{"another client", []policy.Rule{deny(policy.Rule{Client: "bob"})}, review, policy.Allow},
		{"group", []policy.Rule{deny(policy.Rule{Group: "OPS"})}, review, policy.Deny},
		{"group with a letter that becomes an ASCII one", []policy.Rule{deny(policy.Rule{Group: "kel*"})}, review, policy.Deny},
		{"another group", []policy.Rule{deny(policy.Rule{Group: "dev"})}, review, policy.Allow},
		{"group that is allowed", []policy.Rule{allow(policy.Rule{Group: "ops"}), all}, review, policy.Allow},
		{"group in another case", []policy.Rule{allow(policy.Rule{Group: "Ops"}), all}, review, policy.Deny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i := range tt.rules {
				if err := tt.rules[i].Validate(); err != nil {
					t.Fatal(err)
				}
			}
			ctx := caller.With(t.Context(), &caller.Caller{Name: "alice", Profile: "p", Groups: []string{"staff", "ops", "\u212aelvin"}})
			if v := (&policy.Policy{Rules: tt.rules}).DecideOffer(ctx, tt.offer); v.Decision != tt.want {
				t.Errorf("got %s (%s)", v.Decision, v.Reason)
			}
		})
	}
}

// The default for reading applies to prompts and resources, too.
func TestDecideOfferByDefault(t *testing.T) {
	p := &policy.Policy{Defaults: map[registry.Category]policy.Rule{registry.CategoryRead: {Decision: policy.Deny, Origin: "s.yaml:1"}}}
	if v := p.DecideOffer(t.Context(), policy.Offer{Server: "a", URI: "x:y"}); v.Decision != policy.Deny || v.Origin != "s.yaml:1" {
		t.Errorf("got %+v", v)
	}
	p.Defaults[registry.CategoryRead] = policy.Rule{Decision: policy.Ask}
	if v := p.DecideOffer(t.Context(), policy.Offer{Server: "a", URI: "x:y"}); v.Decision != policy.Allow {
		t.Errorf("by a default that asks: %+v", v)
	}
	p.Mode, p.Rules = policy.ModeYolo, []policy.Rule{{Resource: "x:*"}, {Resource: "y:*", Decision: policy.Deny}}
	for uri, want := range map[string]policy.Decision{"x:y": policy.Allow, "y:y": policy.Deny} {
		if v := p.DecideOffer(t.Context(), policy.Offer{Server: "a", URI: uri}); v.Decision != want {
			t.Errorf("%s in yolo mode: %+v", uri, v)
		}
	}
	p.Rules = []policy.Rule{{Resource: "x:*", Decision: policy.Allow, Origin: "s.yaml:2"}}
	if v := p.DecideOffer(t.Context(), policy.Offer{Server: "a", URI: "x:y"}); v.Origin != "s.yaml:2" {
		t.Errorf("yolo mode has no part in what a rule allows: %+v", v)
	}
}

// A rule of a profile about prompts is for its clients alone. A name of any length can be denied,
// and no longer one than a rule reads be allowed.
func TestDecideOfferInProfile(t *testing.T) {
	p := &policy.Policy{Rules: []policy.Rule{{Profile: "p", Prompt: "review", Decision: policy.Deny}}}
	for who, want := range map[*caller.Caller]policy.Decision{nil: policy.Allow, {Name: "a"}: policy.Allow, {Profile: "q"}: policy.Allow, {Profile: "p"}: policy.Deny} {
		if v := p.DecideOffer(caller.With(t.Context(), who), policy.Offer{Server: "s", Prompt: "review", Name: "review"}); v.Decision != want {
			t.Errorf("%+v: %s", who, v.Decision)
		}
	}
	for length, want := range map[int]policy.Decision{64 << 10: policy.Allow, 64<<10 + 1: policy.Deny} {
		p := &policy.Policy{Rules: []policy.Rule{{Resource: "x:*", Decision: policy.Allow}, {Decision: policy.Deny}}}
		if v := p.DecideOffer(t.Context(), policy.Offer{Server: "s", URI: "x:" + strings.Repeat("y", length-2)}); v.Decision != want {
			t.Errorf("%d bytes: %s", length, v.Decision)
		}
	}
}

// A rule about clients does not match the person at the command line, whatever it decides.
func TestRulesAboutClientsDoNotMatchThePerson(t *testing.T) {
	tool := &registry.Tool{Definition: registry.Definition{Name: "write", Source: registry.SourceBuiltin, Category: registry.CategoryWrite}}
	for _, r := range []policy.Rule{{Client: "*", Decision: policy.Allow}, {Client: "*", Decision: policy.Deny}, {Group: "*", Decision: policy.Allow}, {Group: "*", Decision: policy.Deny}} {
		if v := (&policy.Policy{Rules: []policy.Rule{r}}).Decide(t.Context(), tool, registry.Call{Tool: "write"}); v.Decision != policy.Ask {
			t.Errorf("%+v: %s", r, v.Decision)
		}
	}
}

// A rule about a group decides about calls of its members alone.
func TestGroupRules(t *testing.T) {
	p := &policy.Policy{Rules: []policy.Rule{{Group: "dev*", Decision: policy.Deny}}}
	tool := &registry.Tool{Definition: registry.Definition{Name: "read", Source: registry.SourceBuiltin, Category: registry.CategoryRead}}
	for groups, want := range map[string]policy.Decision{"": policy.Allow, "ops": policy.Allow, "ops DEVELOPERS": policy.Deny} {
		ctx := caller.With(t.Context(), &caller.Caller{Name: "a", Groups: strings.Fields(groups)})
		if v := p.Decide(ctx, tool, registry.Call{Tool: "read"}); v.Decision != want {
			t.Errorf("groups %q: %s", groups, v.Decision)
		}
		if _, denied := p.DeniesAll(ctx, tool); denied {
			t.Errorf("groups %q: denied to all", groups)
		}
	}
}
