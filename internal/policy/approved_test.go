package policy

import (
	"slices"
	"testing"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
)

func TestCoversDescribesTheAnswer(t *testing.T) {
	for _, tt := range []struct {
		approval Approval
		want     string
	}{
		{Approval{Kind: ScopeHost, Value: "a.org"}, "a.org"},
		{Approval{Kind: ScopeCommand, Value: "git status"}, "git status …"},
		{Approval{Kind: ScopeCommand, Value: "git"}, "git (ignored: no subcommand)"},
	} {
		if got := tt.approval.Covers(); got != tt.want {
			t.Errorf("%+v covers %q, want %q", tt.approval, got, tt.want)
		}
	}
}

// Answers of several clients about the same tool are several approvals, which can be revoked one
// by one. Saving them warns of nothing.
func TestClientsHaveApprovalsOfTheirOwn(t *testing.T) {
	a := &Approvals{Dir: stateDir(t), Project: "/p", Warn: func(d registry.Diagnostic) { t.Errorf("warned: %s", d.Message) }}
	tool := mcpTool("s", "t", "t")
	for _, client := range []string{"", "bob", "eve"} {
		ctx := t.Context()
		if client != "" {
			ctx = caller.With(ctx, &caller.Caller{Name: client})
		}
		if err := a.Remember(ctx, tool, Scope{Kind: ScopeTool}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := a.List(t.Context(), false)
	if err != nil || len(all) != 3 || all[0].ID == all[1].ID || all[1].ID == all[2].ID || all[2].ID == all[0].ID {
		t.Fatalf("%+v, %v", all, err)
	}
}

// The approval that counts may stand behind others: of another kind, of another tool, or
// of the tool as it was before.
func TestApprovalIsFoundAmongOthers(t *testing.T) {
	p := Policy{Approvals: &Approvals{Dir: stateDir(t), Siblings: func(string) []*registry.Tool { return []*registry.Tool{mcpTool("s", "other", "other")} }}}
	tool := mcpTool("s", "t", "t")
	for _, given := range []*registry.Tool{mcpTool("r", "t", "t"), mcpTool("s", "u", "u"), tool} {
		if err := p.Approvals.Remember(t.Context(), given, Scope{Kind: ScopeTool}); err != nil {
			t.Fatal(err)
		}
	}
	v := p.Decide(t.Context(), tool, registry.Call{})
	if v.Decision != Allow || v.Changes != nil {
		t.Errorf("%+v", v)
	}
}

// A tool that an approved server offers only since then is named as the change; one of a
// server without approval is not, nor is one that edits files.
func TestNewToolOfApprovedServer(t *testing.T) {
	p := Policy{Approvals: &Approvals{Dir: stateDir(t), Siblings: func(string) []*registry.Tool { return []*registry.Tool{mcpTool("s", "t", "t")} }}}
	if err := p.Approvals.Remember(t.Context(), mcpTool("s", "t", "t"), Scope{Kind: ScopeServer}); err != nil {
		t.Fatal(err)
	}
	if err := p.Approvals.Remember(t.Context(), mcpTool("r", "t", "t"), Scope{Kind: ScopeTool}); err != nil {
		t.Fatal(err)
	}
	for server, want := range map[string][]Change{"s": {{Part: "tool"}}, "r": nil} {
		v := p.Decide(t.Context(), mcpTool(server, "new", "new"), registry.Call{})
		if v.Decision != Ask || !slices.Equal(v.Changes, want) {
			t.Errorf("%s: %s, changes %+v, want %+v", server, v.Decision, v.Changes, want)
		}
	}
	if err := p.Approvals.Remember(t.Context(), pathTool("edit", registry.CategoryWrite, "a"), Scope{Kind: ScopeEdits}); err != nil {
		t.Fatal(err)
	}
	if v := p.Decide(t.Context(), pathTool("new", registry.CategoryWrite, "a"), registry.Call{}); v.Decision != Ask || v.Changes != nil {
		t.Errorf("a new tool that edits: %s (%s), changes %+v", v.Decision, v.Reason, v.Changes)
	}
}

// Only edits by a built-in tool that writes and names its files are edits that can be
// allowed together.
func TestEditsAreOfBuiltInTools(t *testing.T) {
	plugin := pathTool("edit", "write", "a")
	plugin.Source = "plugin:x"
	for name, tt := range map[string]struct {
		tool *registry.Tool
		want bool
	}{
		"built in":               {pathTool("edit", "write", "a"), true},
		"of a plugin":            {plugin, false},
		"of another category":    {pathTool("read", "read", "a"), false},
		"without a file":         {pathTool("edit", "write"), false},
		"that has no files ever": {todoTool(), false},
	} {
		f := factsOf(t, tt.tool)
		if got := f.isEdit(); got != tt.want {
			t.Errorf("a tool %s: %t", name, got)
		}
	}
}

func factsOf(t *testing.T, tool *registry.Tool) *facts {
	t.Helper()
	f, err := (&Policy{}).factsOf(t.Context(), tool, registry.Call{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}
