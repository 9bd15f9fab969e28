package exec

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// newDeniedRig returns a rig whose tool fails in the sandbox, which denied it something,
// and succeeds outside. Its steps have "inside" before a run in the sandbox.
func newDeniedRig(v ...policy.Verdict) *rig {
	r := newRig(v...)
	r.tool.Preview = nil
	r.x.Confine = func(tool registry.Tool, _ policy.Confinement) registry.Tool {
		run := tool.Run
		tool.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
			r.tr.add("inside")
			_, err := run(ctx, call)
			failed := registry.ErrorResult(registry.ErrorExecution, "cannot read")
			failed.Summary, failed.Confined, failed.Denied = "exit code 1", true, []string{"reading /home/ann/.ssh"}
			return failed, err
		}
		return tool
	}
	return r
}

func mayLeave() policy.Verdict {
	v := confinedVerdict()
	v.Confine.Outside = true
	return v
}

func TestDeniedCallRunsAgainOutsideAfterYes(t *testing.T) {
	r := newDeniedRig(mayLeave())
	r.script.answers = []Answer{{Choice: Yes}, {Choice: Yes}}
	var seen Record
	r.x.Observe = func(_ context.Context, rec Record) { seen = rec }
	result, err := r.execute(t, `{"a":1}`)
	if err != nil || result.IsError || result.Confined || !strings.HasPrefix(result.Text(), "done\n") ||
		!strings.Contains(result.Text(), "The first run, in the sandbox, failed (exit code 1). The sandbox denied: reading /home/ann/.ssh") {
		t.Errorf("%v, %+v", err, result)
	}
	if diff := cmp.Diff([]string{`{"a":1}`, `{"a":1}`}, r.ran); diff != "" {
		t.Error(diff)
	}
	q := r.script.asked
	if len(q) != 1 || !slices.Equal(q[0].Choices, []Choice{Yes, No}) || !slices.Equal(q[0].Denied, []string{"reading /home/ann/.ssh"}) || !strings.Contains(q[0].Verdict.Reason, "exit code 1") {
		t.Errorf("asked %+v", q)
	}
	if !seen.Outside || seen.Verdict.Decision != policy.Sandbox || len(r.memory.scopes) > 0 {
		t.Errorf("%+v, remembered %v", seen, r.memory.scopes)
	}
}

func TestDeniedCallKeepsItsResultWithoutYes(t *testing.T) {
	inside := "validate check decide inside run"
	asked := inside + " validate check decide confirm"
	tests := []struct {
		name  string
		set   func(*rig)
		steps string
	}{
		{"no", func(r *rig) { r.script.answers = []Answer{{Choice: No}} }, asked},
		{"always, which is not offered", func(r *rig) { r.script.answers = []Answer{{Choice: Always}} }, asked},
		{"nobody can be asked after all", func(r *rig) { r.script.err = registry.ErrNeedsConfirmation }, asked},
		{"no terminal", func(r *rig) { r.x.Confirmer = func() Confirmer { return nil } }, inside},
		{"no confirmer", func(r *rig) { r.x.Confirmer = nil }, inside},
		{"not to be left", func(r *rig) { r.x.Decider = &fixed{r.tr, []policy.Verdict{confinedVerdict()}} }, inside},
		{"denied by now", func(r *rig) { r.x.Decider = &fixed{r.tr, []policy.Verdict{mayLeave(), deny()}} }, inside + " validate check decide"},
		{"not to be left by now", func(r *rig) { r.x.Decider = &fixed{r.tr, []policy.Verdict{mayLeave(), confinedVerdict()}} }, inside + " validate check decide"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newDeniedRig(mayLeave())
			r.script.answers = []Answer{{Choice: Yes}}
			test.set(r)
			result, err := r.execute(t, `{}`)
			if err != nil || !result.IsError || !result.Confined || result.Text() != "cannot read" {
				t.Errorf("%v, %+v", err, result)
			}
			if got := strings.Join(r.tr.steps, " "); got != test.steps {
				t.Errorf("steps %q, want %q", got, test.steps)
			}
		})
	}
}

func TestOutsideIsNotOfferedWithoutDeniedFailure(t *testing.T) {
	for name, change := range map[string]func(*registry.Result){
		"nothing denied": func(r *registry.Result) { r.Denied = nil },
		"no failure":     func(r *registry.Result) { r.IsError, r.ErrorCategory = false, "" },
	} {
		r := newDeniedRig(mayLeave())
		r.script.answers = []Answer{{Choice: Yes}}
		r.x.Wrap = []registry.Middleware{func(tool registry.Tool) registry.Tool {
			run := tool.Run
			tool.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
				result, err := run(ctx, call)
				change(&result)
				return result, err
			}
			return tool
		}}
		if _, err := r.execute(t, `{}`); err != nil || len(r.ran) != 1 || len(r.script.asked) > 0 {
			t.Errorf("%s: %v, ran %q, asked %v", name, err, r.ran, r.script.asked)
		}
	}
}

func TestReasonAgainstOutsideIsForTheModel(t *testing.T) {
	r := newDeniedRig(mayLeave())
	r.script.answers = []Answer{{Choice: No, Said: "use the test key"}}
	result, err := r.execute(t, `{}`)
	if err != nil || !result.IsError || !strings.HasSuffix(result.Text(), "The reason given: use the test key") {
		t.Errorf("%v, %q", err, result.Text())
	}
}

// breaker cancels the call while it asks.
type breaker struct{ cancel context.CancelCauseFunc }

func (b breaker) Turn() func() { return func() {} }

func (b breaker) Confirm(ctx context.Context, _ Question) (Answer, error) {
	b.cancel(context.Canceled)
	return Answer{Choice: Yes}, nil
}

func TestCallCanceledAtTheOfferIsCanceled(t *testing.T) {
	r := newDeniedRig(mayLeave())
	ctx, cancel := context.WithCancelCause(t.Context())
	r.x.Confirmer = func() Confirmer { return breaker{cancel} }
	result, err := r.x.Execute(ctx, r.tool, registry.Call{Tool: "t"})
	if !errors.Is(err, context.Canceled) || result.ErrorCategory != registry.ErrorCancellation || len(r.ran) != 1 {
		t.Errorf("%v, %+v, ran %q", err, result, r.ran)
	}
}

// slow is a person who takes two seconds to answer.
type slow struct{ script }

func (s *slow) Confirm(ctx context.Context, q Question) (Answer, error) {
	time.Sleep(2 * time.Second)
	return s.script.Confirm(ctx, q)
}

// The time of both runs counts, and the time of both questions.
func TestTimeOfBothRunsCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := mayLeave()
		v.Decision = policy.Ask
		r := newDeniedRig(v)
		person := &slow{script{tr: r.tr, answers: []Answer{{Choice: Yes}, {Choice: Yes}}}}
		r.x.Confirmer = func() Confirmer { return person }
		var seen Record
		r.x.Observe = func(_ context.Context, rec Record) { seen = rec }
		run := r.tool.Run
		r.tool.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
			time.Sleep(3 * time.Second)
			return run(ctx, call)
		}
		result, err := r.execute(t, `{}`)
		if err != nil || result.Duration != 6*time.Second || seen.Asked != 4*time.Second {
			t.Errorf("%v: ran for %s, asked for %s", err, result.Duration, seen.Asked)
		}
	})
}

// The question names files that a sandboxed program may have changed since the person saw them.
func TestQuestionNamesChangedFiles(t *testing.T) {
	for _, changed := range [][]string{nil, {"run.sh", "lib.sh"}} {
		v := mayLeave()
		v.Confine.Changed = func() []string { return changed }
		r := newDeniedRig(v)
		r.script.answers = []Answer{{Choice: No}}
		if _, err := r.execute(t, `{}`); err != nil {
			t.Fatal(err)
		}
		reason := r.script.asked[0].Verdict.Reason
		if !strings.HasPrefix(reason, "it failed in the sandbox (exit code 1)") || strings.Contains(reason, "may have changed") != (changed != nil) ||
			changed != nil && !strings.Contains(reason, "run.sh, lib.sh") {
			t.Errorf("changed %q: %q", changed, reason)
		}
	}
}

func TestSecondRunHasItsOwnTimeLimit(t *testing.T) {
	r := newDeniedRig(mayLeave())
	r.script.answers = []Answer{{Choice: Yes}}
	r.x.Timeout = time.Minute
	var deadlines []time.Time
	r.tool.Run = func(ctx context.Context, _ registry.Call) (registry.Result, error) {
		d, _ := ctx.Deadline()
		deadlines = append(deadlines, d)
		return registry.TextResult("done"), nil
	}
	if _, err := r.execute(t, `{}`); err != nil || len(deadlines) != 2 || !deadlines[1].After(deadlines[0]) {
		t.Errorf("%v, %v", err, deadlines)
	}
}
