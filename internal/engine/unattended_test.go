package engine

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// TestKeptQuestionIsOfOneCall changes one thing about a question at a time: its answer must be
// for the same call only, and be void if anything else about the question has changed.
func TestKeptQuestionIsOfOneCall(t *testing.T) {
	when := func(text string) *jq.Expression {
		e, err := jq.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	type setup struct {
		ctx context.Context
		set settings.Settings
		q   exec.Question
	}
	identify := func(change func(*setup)) (call, state string) {
		s := &setup{ctx: t.Context(), set: settings.Settings{Workspace: "/p"}}
		s.q = exec.Question{
			Tool:    &registry.Tool{Definition: registry.Definition{Name: "t", Source: "plugin:x", Description: "d", InputSchema: json.RawMessage(`{}`)}},
			Call:    registry.Call{Tool: "t", Params: json.RawMessage(`{"a":1,"b":2}`)},
			Preview: registry.Preview{Kind: registry.PreviewEdit, FileName: "f", Basis: "1", OriginalContent: "o", NewContent: "n", Command: "c", Directory: "d"},
			Verdict: policy.Verdict{Reason: "r", Origin: "s.yaml:1", Rule: &policy.Rule{Tool: "t", Decision: policy.Ask, When: when(".a")}, Commands: []policy.CommandVerdict{{Text: "ls", Origin: "default"}}},
		}
		change(s)
		k := &unattended{workspace: s.set.Workspace, questions: &policy.Questions{Approvals: &policy.Approvals{Project: "/p"}}}
		call, state, err := k.identify(s.ctx, &s.q)
		if err != nil {
			t.Fatal(err)
		}
		return call, state
	}
	call, state := identify(func(*setup) {})
	const same, otherCall, void = "the same question", "of another call", "void"
	for name, tt := range map[string]struct {
		change func(*setup)
		want   string
	}{
		"nothing":                  {func(*setup) {}, same},
		"order of params":          {func(s *setup) { s.q.Call.Params = json.RawMessage(`{ "b": 2, "a": 1 }`) }, same},
		"name of the tool":         {func(s *setup) { s.q.Call.Tool = "x__t" }, same},
		"params":                   {func(s *setup) { s.q.Call.Params = json.RawMessage(`{"a":1,"b":3}`) }, otherCall},
		"copy":                     {func(s *setup) { s.q.Copy = 1 }, otherCall},
		"workspace":                {func(s *setup) { s.set.Workspace = "/q" }, otherCall},
		"caller":                   {func(s *setup) { s.ctx = caller.With(s.ctx, &caller.Caller{Name: "token"}) }, otherCall},
		"definition":               {func(s *setup) { s.q.Tool.Description = "other" }, void},
		"file beyond the diff":     {func(s *setup) { s.q.Preview.Basis = "2" }, void},
		"content of the file":      {func(s *setup) { s.q.Preview.OriginalContent = "other" }, void},
		"command":                  {func(s *setup) { s.q.Preview.Command = "other" }, void},
		"folder":                   {func(s *setup) { s.q.Preview.Directory = "other" }, void},
		"reason":                   {func(s *setup) { s.q.Verdict.Reason = "other" }, void},
		"place of the rule":        {func(s *setup) { s.q.Verdict.Origin = "s.yaml:2" }, void},
		"rule":                     {func(s *setup) { s.q.Verdict.Rule.Tool = "*" }, void},
		"no rule":                  {func(s *setup) { s.q.Verdict.Rule = nil }, void},
		"condition of the rule":    {func(s *setup) { s.q.Verdict.Rule.When = when(".b") }, void},
		"rule on a single command": {func(s *setup) { s.q.Verdict.Commands[0].Origin = "s.yaml:2" }, void},
		"sandbox":                  {func(s *setup) { s.q.Verdict.Confine.On = true }, void},
	} {
		got, want := same, tt.want
		if c, s := identify(tt.change); c != call {
			got = otherCall
		} else if s != state {
			got = void
		}
		if got != want {
			t.Errorf("after a change of %s the answer is %s, want %s", name, got, want)
		}
	}
}
