package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

// Only the yolo mode counts as a person's agreement to run a call, and only to one that
// runs.
func TestAgreedInYoloModeOnly(t *testing.T) {
	for _, tt := range []struct {
		mode Mode
		line string
		want bool
	}{
		{ModeYolo, "make", true}, {ModeYolo, "ls", true}, {ModeYolo, "rm x", false}, {ModeDefault, "ls", false}, {ModeDefault, "make", false},
	} {
		p := shellPolicy(t)
		p.Mode = tt.mode
		if v := p.Decide(t.Context(), shellTool(tt.line), registry.Call{}); v.Agreed != tt.want {
			t.Errorf("%s in %s mode: %s, agreed %t", tt.line, tt.mode, v.Decision, v.Agreed)
		}
	}
	p := shellPolicy(t)
	p.Mode, p.Rules = ModeYolo, []Rule{{Tool: "run_shell_command", Decision: Sandbox}}
	p.Means = func(string) Means { return Means{Missing: func() string { return "" }} }
	tool := shellTool("make")
	tool.Program = "shell"
	if v := p.Decide(t.Context(), tool, registry.Call{}); v.Decision != Sandbox || !v.Agreed {
		t.Errorf("in the sandbox: %s, agreed %t", v.Decision, v.Agreed)
	}
}

// What would ruin the machine is asked of a person even in yolo mode, where the settings
// say so, and cannot be allowed for good.
func TestCatastrophicCommandAsksPerson(t *testing.T) {
	for _, mode := range []Mode{ModeDefault, ModeYolo} {
		p := Policy{Mode: mode, AskCatastrophic: true, Approvals: &Approvals{Dir: stateDir(t)}}
		v := p.Decide(t.Context(), shellTool("chmod -R 000 /"), registry.Call{})
		if v.Decision != Ask || !v.Person || v.Scopes != nil {
			t.Errorf("%s: %+v", mode, v)
		}
		if v := p.Decide(t.Context(), shellTool("make"), registry.Call{}); v.Person {
			t.Errorf("%s: only a person may answer about make", mode)
		}
	}
}

// An answer can be remembered for calls that ask, also by a default of the settings, if
// there is somewhere to store it.
func TestScopesAreOfferedForQuestions(t *testing.T) {
	byDefault := map[registry.Category]Rule{registry.CategoryOther: {Decision: Ask, Origin: "s.yaml:1"}}
	store := &Approvals{Dir: stateDir(t)}
	for name, tt := range map[string]struct {
		policy Policy
		tool   *registry.Tool
		want   bool
	}{
		"a question":                   {Policy{Approvals: store}, mcpTool("s", "t", "t"), true},
		"a question by a default":      {Policy{Approvals: store, Defaults: byDefault}, mcpTool("s", "t", "t"), true},
		"a question, nowhere to store": {Policy{}, mcpTool("s", "t", "t"), false},
		"no question":                  {Policy{Approvals: store}, trusted(mcpTool("s", "t", "t")), false},
	} {
		if v := tt.policy.Decide(t.Context(), tt.tool, registry.Call{}); (v.Scopes != nil) != tt.want {
			t.Errorf("%s: %s, %+v", name, v.Decision, v.Scopes)
		}
	}
	byRule := Policy{Approvals: store, Defaults: byDefault, Rules: []Rule{{Server: "s", Decision: Ask, Origin: "s.yaml:2"}}}
	if v := byRule.Decide(t.Context(), mcpTool("s", "t", "t"), registry.Call{}); v.Decision != Ask || v.Scopes != nil {
		t.Errorf("a question by a rule, beside a default: %s, %+v", v.Decision, v.Scopes)
	}
	p := shellPolicy(t)
	p.Approvals = store
	v := p.Decide(t.Context(), shellTool("ls; make all; echo; ninja"), registry.Call{})
	if diff := cmp.Diff([]Scope{{Kind: ScopeCommand, Values: []string{"make", "ninja"}}}, v.Scopes); diff != "" {
		t.Error(diff)
	}
}

// A default of the category of commands can be answered for good, a rule that asks cannot.
func TestScopesOfCommandsThatADefaultAsksAbout(t *testing.T) {
	byDefault := Rule{Decision: Ask, Origin: "s.yaml:1"}
	p := Policy{Approvals: &Approvals{Dir: stateDir(t)}, Defaults: map[registry.Category]Rule{registry.CategoryCommand: byDefault}}
	if v := p.Decide(t.Context(), shellTool("make"), registry.Call{}); v.Decision != Ask || v.Scopes == nil {
		t.Errorf("by the default: %s, %+v", v.Decision, v.Scopes)
	}
	p.Rules = []Rule{{Tool: "run_shell_command", Decision: Ask, Origin: "s.yaml:9"}}
	if v := p.Decide(t.Context(), shellTool("make"), registry.Call{}); v.Decision != Ask || v.Scopes != nil {
		t.Errorf("by a rule: %s, %+v", v.Decision, v.Scopes)
	}
}

// A plain name that an earlier server which failed may have too always asks, unless the call
// is denied; a name with the server does not.
func TestContestedNameAsks(t *testing.T) {
	tool := trusted(mcpTool("s", "t", "t"))
	tool.Contested = "broken"
	p := Policy{Approvals: &Approvals{Dir: stateDir(t)}}
	for name, want := range map[string]Decision{"t": Ask, "s__t": Allow, tool.Qualified(): Allow} {
		v := p.Decide(t.Context(), tool, registry.Call{Tool: name})
		if v.Decision != want || (v.Contested == "broken") != (want == Ask) || v.Scopes != nil {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v := p.DecideTool(t.Context(), tool); v.Decision != Ask || v.Contested != "broken" {
		t.Errorf("in a listing: %+v", v)
	}
	spaced := trusted(mcpTool("my srv", "do it", "do_it"))
	spaced.Contested = "broken"
	for name, want := range map[string]Decision{"do_it": Ask, "my srv__do it": Allow, spaced.Qualified(): Allow} {
		if v := p.Decide(t.Context(), spaced, registry.Call{Tool: name}); v.Decision != want {
			t.Errorf("%s: %s (%s)", name, v.Decision, v.Reason)
		}
	}
	p.Rules = []Rule{{Server: "s", Decision: Deny}}
	if v := p.Decide(t.Context(), tool, registry.Call{Tool: "t"}); v.Decision != Deny {
		t.Errorf("denied: %s (%s)", v.Decision, v.Reason)
	}
	p.Rules = []Rule{{Server: "s", Decision: Ask, Reason: "ours"}}
	if v := p.Decide(t.Context(), tool, registry.Call{Tool: "t"}); v.Decision != Ask || v.Contested != "" {
		t.Errorf("asked about anyway: %s (%s)", v.Decision, v.Reason)
	}
}

// Words that a rule allows in the sandbox may be followed by code, which could do more only
// outside of it.
func TestSandboxRuleCoversCode(t *testing.T) {
	for decision, want := range map[Decision]Decision{Sandbox: Sandbox, Allow: Ask} {
		p := Policy{Means: func(string) Means { return Means{Missing: func() string { return "" }} }, Rules: []Rule{{Tool: "run_shell_command", Command: "python", Decision: decision}}}
		tool := shellTool("python -c 'print(1)'")
		tool.Program = "shell"
		if v := p.Decide(t.Context(), tool, registry.Call{}); v.Decision != want {
			t.Errorf("%s: %s (%s)", decision, v.Decision, v.Reason)
		}
	}
}

// A default that the settings have counts for tools of trusted servers too, if it is stricter than the trust.
func TestTrustedServerAndDefaults(t *testing.T) {
	for decision, want := range map[Decision]Decision{Ask: Ask, Allow: Allow, Deny: Deny} {
		p := Policy{Defaults: map[registry.Category]Rule{registry.CategoryRead: {Decision: decision, Origin: "s.yaml:1"}}}
		v := p.Decide(t.Context(), trusted(mcpTool("s", "t", "t")), registry.Call{})
		if v.Decision != want || want != Allow && v.Origin != "s.yaml:1" {
			t.Errorf("the default is %s: %s (%s)", decision, v.Decision, v.Reason)
		}
	}
}

// An answer that covers any arguments does not cover one that a rule may deny.
func TestDoubtAboutDenialComesBeforeApproval(t *testing.T) {
	p := &Policy{Approvals: &Approvals{Dir: stateDir(t)}, Means: func(string) Means { return Means{Missing: func() string { return "" }} },
		Rules: entries(t, Deny, "run_shell_command(make install)")}
	if err := p.Approvals.Remember(t.Context(), shellTool("make"), Scope{Kind: ScopeCommand, Values: []string{"make"}, Confined: true}); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]Decision{"make all": Sandbox, "make install": Deny, "make $T": Ask} {
		tool := shellTool(line)
		tool.Program = "shell"
		if v := p.Decide(t.Context(), tool, registry.Call{}); v.Decision != want || v.Reason == "" {
			t.Errorf("%s: %s (%s), want %s", line, v.Decision, v.Reason, want)
		}
	}
}
