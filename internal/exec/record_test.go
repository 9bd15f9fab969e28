package exec

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// hooked are hooks that record their input.
type hooked struct {
	trace   []string
	params  string // params that Before returns
	asking  registry.Asking
	before  error
	after   func(registry.Result) (registry.Result, error)
	screens bool
}

func (h *hooked) Before(_ context.Context, _ *registry.Tool, c registry.Call) (json.RawMessage, registry.Asking, error) {
	h.trace = append(h.trace, "before "+string(c.Params))
	if h.params == "" {
		return nil, h.asking, h.before
	}
	return json.RawMessage(h.params), h.asking, h.before
}

func (h *hooked) After(_ context.Context, _ *registry.Tool, c registry.Call, r registry.Result) (registry.Result, error) {
	h.trace = append(h.trace, "after "+string(c.Params))
	if h.after == nil {
		return r, nil
	}
	return h.after(r)
}

func (h *hooked) Screens(*registry.Tool) bool { return h.screens }

// observed is an executor with hooks, all of whose steps are recorded in order.
func observed(h *hooked, decide func(string) policy.Verdict) (*Executor, *registry.Tool) {
	note := func(what string, params json.RawMessage) { h.trace = append(h.trace, what+" "+string(params)) }
	x := &Executor{
		Validate: func(_ context.Context, _ *registry.Tool, params json.RawMessage) error {
			note("validate", params)
			if strings.Contains(string(params), "bad") {
				return registry.Invalid("t", "", "bad")
			}
			return nil
		},
		Decide: decider(func(c registry.Call) policy.Verdict { note("decide", c.Params); return decide(string(c.Params)) }),
		Hooks:  h,
		Observe: func(_ context.Context, r Record) {
			h.trace = append(h.trace, "observe "+string(r.Call.Params)+" "+r.Verdict.Decision.String()+" "+r.Result.Text())
		},
	}
	return x, &registry.Tool{Definition: registry.Definition{Name: "t"}, Behavior: registry.Behavior{Run: func(_ context.Context, c registry.Call) (registry.Result, error) {
		note("run", c.Params)
		return registry.TextResult("done"), nil
	}}}
}

// decider returns a function that decides by the call alone.
func decider(decide func(registry.Call) policy.Verdict) func(context.Context, *registry.Tool, registry.Call) policy.Verdict {
	return func(_ context.Context, _ *registry.Tool, c registry.Call) policy.Verdict { return decide(c) }
}

func allowAll(string) policy.Verdict { return policy.Verdict{Decision: policy.Allow} }

func TestHooksAndObserver(t *testing.T) {
	stop := errors.New("stop")
	for name, tt := range map[string]struct {
		hooks  hooked
		decide func(string) policy.Verdict
		want   []string
		text   string
		err    error
	}{
		"params stay": {hooked{}, allowAll,
			[]string{"validate {}", "decide {}", "before {}", "run {}", "observe {} allow done", "after {}"}, "done", nil},
		"changed params pass every check again": {hooked{params: `{"n":1}`}, allowAll,
			[]string{"validate {}", "decide {}", "before {}", `validate {"n":1}`, `decide {"n":1}`, `run {"n":1}`, `observe {"n":1} allow done`, `after {"n":1}`}, "done", nil},
		"changed params may be denied": {hooked{params: `{"n":1}`}, func(params string) policy.Verdict {
			if params == "{}" {
				return policy.Verdict{Decision: policy.Allow}
			}
			return policy.Verdict{Decision: policy.Deny}
		}, []string{"validate {}", "decide {}", "before {}", `validate {"n":1}`, `decide {"n":1}`, `observe {"n":1} deny `}, "", registry.ErrDenied},
		"changed params may need confirmation": {hooked{params: `{"n":1}`}, func(params string) policy.Verdict {
			if params == "{}" {
				return policy.Verdict{Decision: policy.Allow}
			}
			return policy.Verdict{Decision: policy.Ask}
		}, []string{"validate {}", "decide {}", "before {}", `validate {"n":1}`, `decide {"n":1}`, `observe {"n":1} ask `}, "", registry.ErrNeedsConfirmation},
		"changed params may be invalid": {hooked{params: `{"bad":1}`}, allowAll,
			[]string{"validate {}", "decide {}", "before {}", `validate {"bad":1}`, `observe {"bad":1} ask `}, "", &registry.ArgsError{}},
		"a hook stops the call": {hooked{before: stop}, allowAll,
			[]string{"validate {}", "decide {}", "before {}", "observe {} allow "}, "", stop},
		"denied before any hook": {hooked{}, func(string) policy.Verdict { return policy.Verdict{Decision: policy.Deny} },
			[]string{"validate {}", "decide {}", "observe {} deny "}, "", registry.ErrDenied},
		"the result is replaced": {hooked{after: func(registry.Result) (registry.Result, error) { return registry.TextResult("other"), nil }}, allowAll,
			[]string{"validate {}", "decide {}", "before {}", "run {}", "observe {} allow done", "after {}"}, "other", nil},
		"the result is withheld": {hooked{after: func(r registry.Result) (registry.Result, error) { return r, stop }}, allowAll,
			[]string{"validate {}", "decide {}", "before {}", "run {}", "observe {} allow done", "after {}"}, "", stop},
	} {
		t.Run(name, func(t *testing.T) {
			h := tt.hooks
			x, tool := observed(&h, tt.decide)
			r, err := x.Execute(t.Context(), tool, registry.Call{})
			if diff := cmp.Diff(tt.want, h.trace); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if _, invalid := tt.err.(*registry.ArgsError); invalid {
				if !errors.As(err, new(*registry.ArgsError)) || !strings.Contains(err.Error(), "from a beforeCall hook") {
					t.Errorf("error %v", err)
				}
			} else if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if r.Text() != tt.text {
				t.Errorf("text %q", r.Text())
			}
		})
	}
}

// Text that a hook may still remove must not be shown before.
func TestScreenedOutputIsNotStreamed(t *testing.T) {
	for _, screens := range []bool{true, false} {
		h := &hooked{screens: screens}
		x, tool := observed(h, allowAll)
		tool.Run = func(_ context.Context, c registry.Call) (registry.Result, error) {
			c.Emit(registry.TextContent("x"))
			return registry.Result{}, nil
		}
		n := 0
		if _, err := x.Execute(t.Context(), tool, registry.Call{Emit: func(registry.Content) { n++ }}); err != nil || (n == 0) != screens {
			t.Errorf("screened %t: %d pieces, %v", screens, n, err)
		}
	}
}

// TestHookRequiresConfirmation checks that a hook can require confirmation of a
// call that the policy allows, and cannot allow more than the policy.
func TestHookRequiresConfirmation(t *testing.T) {
	approved := policy.Verdict{Decision: policy.Allow, Approval: "1"}
	scoped := policy.Verdict{Decision: policy.Ask, Reason: "its category", Scopes: []policy.Scope{{Kind: policy.ScopeTool}}}
	for name, tt := range map[string]struct {
		verdict policy.Verdict
		want    string // the error
	}{
		"allowed":           {policy.Verdict{Decision: policy.Allow}, "hook says so"},
		"allowed for good":  {approved, "hook says so"},
		"asked about":       {scoped, "hook says so"},
		"denied":            {policy.Verdict{Decision: policy.Deny, Reason: "never"}, "never"},
		"the mode says yes": {policy.Verdict{Decision: policy.Allow, Agreed: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hooked{asking: registry.Asking{Reason: "hook says so", Origin: "hook"}}
			x, tool := observed(h, func(string) policy.Verdict { return tt.verdict })
			_, err := x.Execute(t.Context(), tool, registry.Call{})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if needs, ok := errors.AsType[*NeedsConfirmation](err); ok && (needs.Verdict.Origin != "hook" || len(needs.Verdict.Scopes) > 0) {
				t.Errorf("%+v", needs.Verdict)
			}
		})
	}
}

// What a person's edit makes of a call passes every check and the hooks again, and
// what a hook makes of that is shown before it runs.
func TestHooksSeeAnEditedCall(t *testing.T) {
	r := newRig(ask())
	r.script.answers = []Answer{{Choice: Edit, Content: "mine"}, {Choice: Yes}}
	h := &hooked{}
	r.x.Hooks = h
	if _, err := r.execute(t, `{"content":"first"}`); err != nil {
		t.Fatal(err)
	}
	want := []string{`before {"content":"first"}`, `before {"content":"mine"}`, `after {"content":"mine"}`}
	if diff := cmp.Diff(want, h.trace); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}

	r = newRig(ask())
	r.script.answers = []Answer{{Choice: Edit, Content: "mine"}, {Choice: Yes}}
	r.x.Hooks = &hooked{params: `{"content":"hook's"}`}
	if _, err := r.execute(t, `{"content":"first"}`); err != nil {
		t.Fatal(err)
	}
	if shown := string(r.script.asked[1].Call.Params); shown != `{"content":"hook's"}` || r.ran[0] != shown {
		t.Errorf("shown %s, ran %s", shown, r.ran[0])
	}
}

// What a running call leads to, such as a redirect, is decided on its own: an answer to the question about the call counts
// for it only if the person has agreed to it too and no rule asks.
func TestWhatACallLeadsToIsDecided(t *testing.T) {
	allow, ask := policy.Verdict{Decision: policy.Allow}, policy.Verdict{Decision: policy.Ask}
	rule := policy.Verdict{Decision: policy.Ask, Rule: &policy.Rule{}}
	for name, tt := range map[string]struct {
		first, then policy.Verdict
		agreed      bool
		want        error
	}{
		"allowed":                  {ask, allow, false, nil},
		"denied":                   {ask, policy.Verdict{Decision: policy.Deny}, true, registry.ErrDenied},
		"confirmed and agreed":     {ask, ask, true, nil},
		"confirmed, not agreed":    {ask, ask, false, registry.ErrNeedsConfirmation},
		"allowed without question": {allow, ask, true, registry.ErrNeedsConfirmation},
		"a rule asks":              {ask, rule, true, registry.ErrNeedsConfirmation},
		"always a question":        {ask, policy.Verdict{Decision: policy.Ask, Firm: true}, true, registry.ErrNeedsConfirmation},
	} {
		var got error
		x := &Executor{Validate: func(context.Context, *registry.Tool, json.RawMessage) error { return nil },
			Decide: decider(func(c registry.Call) policy.Verdict {
				if string(c.Params) == "{}" {
					return tt.first
				}
				return tt.then
			}),
			Confirmer: func() Confirmer { return &script{tr: &trace{}, answers: []Answer{{Choice: Yes}}} }}
		tool := &registry.Tool{Definition: registry.Definition{Name: "t"}, Behavior: registry.Behavior{Run: func(ctx context.Context, c registry.Call) (registry.Result, error) {
			got = c.Admit(ctx, json.RawMessage(`{"n":1}`), tt.agreed)
			return registry.TextResult("done"), nil
		}}}
		if _, err := x.Execute(t.Context(), tool, registry.Call{}); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	x := &Executor{Validate: func(context.Context, *registry.Tool, json.RawMessage) error { return nil }, Decide: decider(func(registry.Call) policy.Verdict { return allow }),
		Hooks: &hooked{params: `{"n":2}`}}
	if err := x.admitting(&registry.Tool{}, registry.Call{}, false)(t.Context(), json.RawMessage(`{"n":1}`), true); !errors.Is(err, registry.ErrDenied) {
		t.Errorf("a hook changes it: %v", err)
	}
}
