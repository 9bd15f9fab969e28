package exec

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// trace records the steps of a call in order.
type trace struct{ steps []string }

func (tr *trace) add(s string) { tr.steps = append(tr.steps, s) }

// script answers questions in order and records them.
type script struct {
	tr      *trace
	answers []Answer
	asked   []Question
	err     error
}

func (s *script) Turn() func() { return func() {} }

func (s *script) Confirm(_ context.Context, q Question) (Answer, error) {
	s.tr.add("confirm")
	s.asked = append(s.asked, q)
	if s.err != nil {
		return Answer{Choice: Yes}, s.err
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	return a, nil
}

type fixed struct {
	tr       *trace
	verdicts []policy.Verdict
}

func (f *fixed) Decide(context.Context, *registry.Tool, registry.Call) policy.Verdict {
	f.tr.add("decide")
	v := f.verdicts[0]
	if len(f.verdicts) > 1 {
		f.verdicts = f.verdicts[1:]
	}
	return v
}

type memory struct {
	scopes []policy.Scope
	err    error
}

func (m *memory) Remember(_ context.Context, _ *registry.Tool, s policy.Scope) error {
	m.scopes = append(m.scopes, s)
	return m.err
}

// rig is an executor and a tool, both of which record their steps.
type rig struct {
	tr     *trace
	x      *Executor
	tool   *registry.Tool
	script *script
	memory *memory
	ran    []string // params that reached Run
	warned []string
}

func newRig(v ...policy.Verdict) *rig {
	tr := &trace{}
	r := &rig{tr: tr, script: &script{tr: tr}, memory: &memory{}}
	r.tool = &registry.Tool{
		Definition: registry.Definition{Name: "t", Source: registry.SourceBuiltin},
		Behavior: registry.Behavior{Check: func(context.Context, registry.Call) error { tr.add("check"); return nil },
			Preview: func(context.Context, registry.Call) (registry.Preview, error) {
				tr.add("preview")
				return registry.Preview{Kind: registry.PreviewEdit, NewContent: "new"}, nil
			},
			Revise: func(_ context.Context, _ registry.Call, content string) (registry.Call, error) {
				tr.add("revise")
				params, err := json.Marshal(map[string]string{"content": content})
				return registry.Call{Params: params}, err
			},
			Run: func(_ context.Context, c registry.Call) (registry.Result, error) {
				tr.add("run")
				r.ran = append(r.ran, string(c.Params))
				return registry.TextResult("done"), nil
			}},
	}
	r.x = &Executor{
		Validate: func(_ context.Context, t *registry.Tool, params json.RawMessage) error {
			tr.add("validate")
			if strings.Contains(string(params), "bad") {
				return registry.Invalid(t.Name, "/x", "bad")
			}
			return nil
		},
		Decide: (&fixed{tr, v}).Decide, Confirmer: func() Confirmer { return r.script }, Remember: r.memory.Remember,
		Warn: func(d registry.Diagnostic) { r.warned = append(r.warned, d.Code+": "+d.Message) },
	}
	return r
}

func (r *rig) execute(t *testing.T, params string) (registry.Result, error) {
	t.Helper()
	return r.x.Execute(t.Context(), r.tool, registry.Call{Tool: "t", Params: json.RawMessage(params)})
}

func allow() policy.Verdict {
	return policy.Verdict{Decision: policy.Allow, Reason: "fine", Origin: "default"}
}

func ask(scopes ...policy.Scope) policy.Verdict {
	return policy.Verdict{Decision: policy.Ask, Reason: "writes are asked about", Origin: "default", Scopes: scopes}
}

func deny() policy.Verdict {
	return policy.Verdict{Decision: policy.Deny, Reason: "not here", Origin: "s.yaml:3"}
}

func TestOrder(t *testing.T) {
	tests := []struct {
		name    string
		verdict []policy.Verdict
		params  string
		answers []Answer
		steps   string
		err     error
	}{
		{"allowed", []policy.Verdict{allow()}, `{}`, nil, "validate check decide run", nil},
		{"invalid params need no confirmation", []policy.Verdict{ask()}, `{"bad":1}`, nil, "validate", new(registry.ArgsError)},
		{"denied", []policy.Verdict{deny()}, `{}`, nil, "validate check decide", registry.ErrDenied},
		{"yes", []policy.Verdict{ask()}, `{}`, []Answer{{Choice: Yes}}, "validate check decide preview confirm decide run", nil},
		{"no", []policy.Verdict{ask()}, `{}`, []Answer{{Choice: No}}, "validate check decide preview confirm", registry.ErrDenied},
		{"an answer that was not offered", []policy.Verdict{ask()}, `{}`, []Answer{{Choice: AlwaysServer}}, "validate check decide preview confirm", registry.ErrDenied},
		{"edit asks again", []policy.Verdict{ask()}, `{}`, []Answer{{Choice: Edit, Content: "mine"}, {Choice: Yes}},
			"validate check decide preview confirm revise validate check decide preview confirm decide run", nil},
		{"edit asks again even if a rule would allow it", []policy.Verdict{ask(), allow()}, `{}`, []Answer{{Choice: Edit, Content: "mine"}, {Choice: No}},
			"validate check decide preview confirm revise validate check decide preview confirm", registry.ErrDenied},
		{"edited call is denied", []policy.Verdict{ask(), deny()}, `{}`, []Answer{{Choice: Edit, Content: "mine"}},
			"validate check decide preview confirm revise validate check decide", registry.ErrDenied},
		{"edited call is invalid", []policy.Verdict{ask()}, `{}`, []Answer{{Choice: Edit, Content: "bad"}},
			"validate check decide preview confirm revise validate", new(registry.ArgsError)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(tt.verdict...)
			r.script.answers = tt.answers
			_, err := r.execute(t, tt.params)
			if got := strings.Join(r.tr.steps, " "); got != tt.steps {
				t.Errorf("steps %q, want %q", got, tt.steps)
			}
			var args *registry.ArgsError
			switch {
			case tt.err == nil && err != nil, tt.err != nil && err == nil:
				t.Errorf("error %v, want %v", err, tt.err)
			case errors.As(tt.err, &args):
				if !errors.As(err, &args) {
					t.Errorf("error %v, want an ArgsError", err)
				}
			case !errors.Is(err, tt.err):
				t.Errorf("error %v, want %v", err, tt.err)
			}
		})
	}
}

func TestEditedCallRunsAsShown(t *testing.T) {
	r := newRig(ask())
	r.script.answers = []Answer{{Choice: Edit, Content: ""}, {Choice: Edit, Content: "second"}, {Choice: Yes}}
	r.tool.Preview = func(_ context.Context, c registry.Call) (registry.Preview, error) {
		var p struct{ Content string }
		err := json.Unmarshal(c.Params, &p)
		return registry.Preview{Kind: registry.PreviewEdit, FileName: "f", NewContent: p.Content}, err
	}
	result, err := r.execute(t, `{"content":"first"}`)
	if err != nil {
		t.Fatal(err)
	}
	if text := result.Text(); !strings.Contains(text, "-first") || !strings.Contains(text, "+second") {
		t.Errorf("the model is told %q", text)
	}
	var shown []string
	for _, q := range r.script.asked {
		shown = append(shown, string(q.Call.Params))
	}
	if diff := cmp.Diff([]string{`{"content":"first"}`, `{"content":""}`, `{"content":"second"}`}, shown); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`{"content":"second"}`}, r.ran); diff != "" {
		t.Error(diff)
	}
}

// TestParamsCannotBeModified checks that params cannot be modified between the
// question and the run.
func TestParamsCannotBeModified(t *testing.T) {
	r := newRig(ask())
	params := json.RawMessage(`{"a":1}`)
	r.script.answers = []Answer{{Choice: Yes}}
	r.tool.Preview = func(context.Context, registry.Call) (registry.Preview, error) {
		copy(params, `{"b":2}`)
		return registry.Preview{}, nil
	}
	if _, err := r.x.Execute(t.Context(), r.tool, registry.Call{Params: params}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`{"a":1}`}, r.ran); diff != "" {
		t.Error(diff)
	}
}

func TestChoices(t *testing.T) {
	tool := []policy.Scope{{Kind: policy.ScopeTool}, {Kind: policy.ScopeServer}}
	command := []policy.Scope{{Kind: policy.ScopeCommand, Values: []string{"make"}}}
	inside, outside := commandScopes()
	for name, tt := range map[string]struct {
		verdict  policy.Verdict
		remember bool
		revise   bool
		want     []Choice
	}{
		"server's tool":        {ask(tool...), true, false, []Choice{Yes, AlwaysTool, AlwaysServer, No}},
		"command":              {ask(command...), true, false, []Choice{Yes, Always, No}},
		"confinable command":   {ask(inside, outside), true, false, []Choice{Yes, Always, AlwaysOutside, No}},
		"only in the sandbox":  {ask(inside), true, false, []Choice{Yes, Always, No}},
		"edit":                 {ask(policy.Scope{Kind: policy.ScopeEdits}), true, true, []Choice{Yes, Always, Edit, No}},
		"no scope to remember": {ask(), true, false, []Choice{Yes, No}},
		"no store for answers": {ask(tool...), false, false, []Choice{Yes, No}},
		"guarded edit":         {ask(), true, true, []Choice{Yes, Edit, No}},
	} {
		r := newRig(tt.verdict)
		if !tt.remember {
			r.x.Remember = nil
		}
		if !tt.revise {
			r.tool.Revise = nil
		}
		r.script.answers = []Answer{{Choice: Yes}}
		if _, err := r.execute(t, `{}`); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, r.script.asked[0].Choices); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// commandScopes returns scopes for commands in the sandbox and outside.
func commandScopes() (inside, outside policy.Scope) {
	outside = policy.Scope{Kind: policy.ScopeCommand, Values: []string{"make"}}
	inside = outside
	inside.Confined = true
	return inside, outside
}

func TestRemember(t *testing.T) {
	inside, outside := commandScopes()
	tool, server := policy.Scope{Kind: policy.ScopeTool}, policy.Scope{Kind: policy.ScopeServer}
	for _, tt := range []struct {
		answer        Choice
		offered, want []policy.Scope
	}{
		{Yes, []policy.Scope{tool, server}, nil},
		{Always, []policy.Scope{tool}, []policy.Scope{tool}},
		{AlwaysTool, []policy.Scope{tool, server}, []policy.Scope{tool}},
		{AlwaysServer, []policy.Scope{tool, server}, []policy.Scope{server}},
		{Always, []policy.Scope{inside, outside}, []policy.Scope{inside}},
		{AlwaysOutside, []policy.Scope{inside, outside}, []policy.Scope{outside}},
	} {
		r := newRig(ask(tt.offered...))
		r.script.answers = []Answer{{Choice: tt.answer}}
		if _, err := r.execute(t, `{}`); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, r.memory.scopes); diff != "" {
			t.Errorf("%s: %s", tt.answer, diff)
		}
	}
}

// A yes to a question does not count if a rule denies the call by now, and is not remembered.
func TestLateYesDoesNotOverrideDenial(t *testing.T) {
	for _, choice := range []Choice{Yes, Always} {
		r := newRig(ask(policy.Scope{Kind: policy.ScopeTool}), ask(policy.Scope{Kind: policy.ScopeTool}), deny())
		r.script.answers = []Answer{{Choice: choice}}
		_, err := r.execute(t, `{}`)
		denied, ok := errors.AsType[*Denied](err)
		if !ok || denied.Origin != "s.yaml:3" || len(r.ran) > 0 || len(r.memory.scopes) > 0 || len(r.script.asked) != 1 {
			t.Errorf("%s: %v, ran %q, remembered %v", choice, err, r.ran, r.memory.scopes)
		}
	}
}

// A question is not asked if another one was answered with "always" in the meantime, so that
// the call is allowed by now.
func TestCallThatIsAllowedByNowIsNotAskedAbout(t *testing.T) {
	tool := policy.Scope{Kind: policy.ScopeTool}
	for name, tt := range map[string]struct {
		first, now policy.Verdict
		asked      bool
		confined   bool
	}{
		"allowed":                     {first: ask(tool), now: allow()},
		"allowed in the sandbox":      {first: ask(tool), now: confinedVerdict(), confined: true},
		"still asked":                 {first: ask(tool), now: ask(tool), asked: true},
		"allowed, with no \"always\"": {first: ask(), now: allow(), asked: true},
	} {
		r := newRig(tt.first, tt.now)
		confined := false
		r.x.Confine = func(tool registry.Tool, _ policy.Confinement) registry.Tool { confined = true; return tool }
		r.script.answers = []Answer{{Choice: Yes}}
		if _, err := r.execute(t, `{}`); err != nil || len(r.ran) != 1 || (len(r.script.asked) > 0) != tt.asked || confined != tt.confined {
			t.Errorf("%s: %v, ran %q, asked %d times, confined %t", name, err, r.ran, len(r.script.asked), confined)
		}
	}
}

func TestCallRunsIfRememberFails(t *testing.T) {
	r := newRig(ask(policy.Scope{Kind: policy.ScopeTool}))
	r.script.answers = []Answer{{Choice: Always}}
	r.memory.err = errors.New("disk full")
	if _, err := r.execute(t, `{}`); err != nil || len(r.ran) != 1 {
		t.Errorf("ran %q, %v", r.ran, err)
	}
	if len(r.warned) != 1 || !strings.Contains(r.warned[0], "disk full") {
		t.Errorf("warned %q", r.warned)
	}
}

// A yes accepts what the verdict says, but not that of a client that answers for itself alone.
func TestYesAccepts(t *testing.T) {
	for name, tt := range map[string]struct {
		caller *caller.Caller
		choice Choice
		failed error
		want   int
		warned bool
	}{
		"yes":                   {nil, Yes, nil, 1, false},
		"no":                    {nil, No, nil, 0, false},
		"on stdin of serve":     {&caller.Caller{Name: "stdio"}, Yes, nil, 1, false},
		"a client with a token": {&caller.Caller{Name: "bob", Token: "bob"}, Yes, nil, 0, false},
		"it cannot be stored":   {nil, Yes, errors.New("disk full"), 1, true},
	} {
		accepted, v := 0, ask()
		v.Accept = func(context.Context) error { accepted++; return tt.failed }
		r := newRig(v)
		r.script.answers = []Answer{{Choice: tt.choice}}
		ctx := t.Context()
		if tt.caller != nil {
			ctx = caller.With(ctx, tt.caller)
		}
		_, err := r.x.Execute(ctx, r.tool, registry.Call{})
		if accepted != tt.want || (err == nil) != (tt.choice == Yes) || (len(r.warned) > 0) != tt.warned {
			t.Errorf("%s: accepted %d, %v, warned %q", name, accepted, err, r.warned)
		}
	}
}

func TestNobodyCanBeAsked(t *testing.T) {
	command := policy.Scope{Kind: policy.ScopeCommand, Values: []string{"make", "go"}}
	rule := policy.Rule{Decision: policy.Ask}
	for name, tt := range map[string]struct {
		verdict policy.Verdict
		change  func(*registry.Tool)
		want    []string
	}{
		"tool":    {ask(), func(*registry.Tool) {}, []string{"--yes", `allowedTools: ["t"]`}},
		"command": {ask(command), func(*registry.Tool) {}, []string{"--yes", `allowedTools: ["t(make)", "t(go)"]`}},
		"server": {ask(), func(t *registry.Tool) { t.Source, t.Server, t.ServerTool = "mcp:srv", "srv", "echo" },
			[]string{"--yes", `allowedTools: ["srv__echo"]`, `trust: true of server "srv"`}},
		"line that no rule can allow":         {policy.Verdict{Commands: []policy.CommandVerdict{{}}}, func(*registry.Tool) {}, []string{"--yes", "no rule on commands"}},
		"command of several":                  {policy.Verdict{Scopes: []policy.Scope{command}, Commands: []policy.CommandVerdict{{}}}, func(*registry.Tool) {}, []string{`allowedTools: ["t(make)", "t(go)"]`}},
		"folder of edits":                     {ask(policy.Scope{Kind: policy.ScopeEdits, Values: []string{"docs"}}), func(*registry.Tool) {}, []string{`allowedTools: ["t"]`}},
		"rule that allows":                    {policy.Verdict{Rule: &policy.Rule{Decision: policy.Allow}, Origin: "s.yaml:7"}, func(*registry.Tool) {}, []string{`allowedTools: ["t"]`}},
		"program that may be banned":          {policy.Verdict{Unsure: true}, func(*registry.Tool) {}, []string{"name the program literally", "--yes denies what may be a banned command"}},
		"what only a person may answer":       {policy.Verdict{Person: true}, func(*registry.Tool) {}, []string{"answer at a terminal; neither --yes nor a rule"}},
		"line that cannot be parsed":          {policy.Verdict{Unread: true}, func(*registry.Tool) {}, []string{"can be parsed", "--yes denies"}},
		"file that always needs confirmation": {policy.Verdict{Firm: true}, func(*registry.Tool) {}, []string{"--yes", "no rule can allow it"}},
		"rule that requires the sandbox": {policy.Verdict{Rule: &policy.Rule{Decision: policy.Sandbox}, Origin: "s.yaml:7", Commands: []policy.CommandVerdict{{}}},
			func(*registry.Tool) {}, []string{"--yes", "the rule at s.yaml:7 allows it once"}},
		"rule that asks": {policy.Verdict{Rule: &rule, Origin: "s.yaml:7"}, func(*registry.Tool) {}, []string{"--yes", "s.yaml:7"}},
	} {
		r := newRig(tt.verdict)
		r.x.Confirmer = nil
		tt.change(r.tool)
		_, err := r.execute(t, `{}`)
		var need *NeedsConfirmation
		if !errors.As(err, &need) || !errors.Is(err, registry.ErrNeedsConfirmation) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, w := range tt.want {
			if !strings.Contains(need.Hint, w) || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: hint %q lacks %q", name, need.Hint, w)
			}
		}
		if len(r.ran) > 0 {
			t.Errorf("%s: it ran", name)
		}
	}
}

func TestDeniedErrorNamesOrigin(t *testing.T) {
	r := newRig(deny())
	_, err := r.execute(t, `{}`)
	var d *Denied
	if !errors.As(err, &d) || d.Origin != "s.yaml:3" || err.Error() != `"t" is denied: not here (s.yaml:3)` {
		t.Errorf("by policy: %v", err)
	}
	r = newRig(ask())
	r.script.answers = []Answer{{Choice: No, Reason: "no answer within 5s"}}
	_, err = r.execute(t, `{}`)
	if !errors.As(err, &d) || d.Origin != "person" || err.Error() != `"t" was denied: no answer within 5s` {
		t.Errorf("by the person: %v", err)
	}
	r = newRig(ask())
	r.script.answers = []Answer{{Choice: No, Said: "use make"}}
	if _, err = r.execute(t, `{}`); !errors.As(err, &d) || err.Error() != `"t" was denied: you said no: use make` {
		t.Errorf("by the person, with a reason: %v", err)
	}
}

func TestConfirmerFails(t *testing.T) {
	r := newRig(ask())
	r.script.err = errors.New("the terminal is gone")
	_, err := r.execute(t, `{}`)
	if !errors.Is(err, registry.ErrNeedsConfirmation) || !strings.Contains(err.Error(), "the terminal is gone") || len(r.ran) > 0 {
		t.Errorf("ran %q, %v", r.ran, err)
	}
}

func TestChecksThatFailOrPanic(t *testing.T) {
	boom := errors.New("boom")
	for name, change := range map[string]func(*rig){
		"check fails":    func(r *rig) { r.tool.Check = func(context.Context, registry.Call) error { return boom } },
		"check panics":   func(r *rig) { r.tool.Check = func(context.Context, registry.Call) error { panic(boom) } },
		"preview fails":  func(r *rig) { r.tool.Preview = failPreview(boom) },
		"preview panics": func(r *rig) { r.tool.Preview = failPreview(nil) },
		"validate fails": func(r *rig) {
			r.x.Validate = func(context.Context, *registry.Tool, json.RawMessage) error { return boom }
		},
	} {
		r := newRig(ask())
		change(r)
		if _, err := r.execute(t, `{}`); err == nil || !errors.Is(err, boom) && !errors.Is(err, ErrPanic) || len(r.ran) > 0 {
			t.Errorf("%s: ran %q, %v", name, r.ran, err)
		}
	}
}

func failPreview(err error) func(context.Context, registry.Call) (registry.Preview, error) {
	return func(context.Context, registry.Call) (registry.Preview, error) {
		if err == nil {
			panic("preview")
		}
		return registry.Preview{}, err
	}
}

// A tool receives the paths that the policy decided about.
func TestCallHasThePathsOfTheDecision(t *testing.T) {
	r := newRig(policy.Verdict{Decision: policy.Allow, Paths: []string{"a"}})
	var got []string
	r.tool.Run = func(_ context.Context, call registry.Call) (registry.Result, error) {
		got = call.Paths
		return registry.Result{}, nil
	}
	if _, err := r.x.Execute(t.Context(), r.tool, registry.Call{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a"}, got); diff != "" {
		t.Error(diff)
	}
}

// A tool that reached a time limit of its own is not said to have reported just any error.
func TestToolErrorNamesTimeLimit(t *testing.T) {
	for category, want := range map[registry.ErrorCategory]bool{registry.ErrorTimeout: true, registry.ErrorExecution: false} {
		if got := (&ToolError{Category: category}).Error(); strings.Contains(got, "time limit") != want {
			t.Errorf("%s: %s", category, got)
		}
	}
}
