package exec

import (
	"context"
	"encoding/json"
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

// runner returns an executor that allows everything, and a tool with the given Run.
func runner(run func(context.Context, registry.Call) (registry.Result, error)) (*Executor, *registry.Tool) {
	x := &Executor{
		Validate: func(context.Context, *registry.Tool, json.RawMessage) error { return nil },
		Decide:   (&fixed{&trace{}, []policy.Verdict{{Decision: policy.Allow}}}).Decide,
	}
	return x, &registry.Tool{Definition: registry.Definition{Name: "t"}, Behavior: registry.Behavior{Run: run}}
}

func TestTimeLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		own, override, takes time.Duration
		over                 bool
	}{
		"no limit":                {0, 0, time.Hour, false},
		"in time":                 {time.Minute, 0, time.Second, false},
		"over the tool's":         {time.Second, 0, time.Minute, true},
		"over the override":       {0, time.Second, time.Minute, true},
		"the override is longer":  {time.Second, time.Hour, time.Minute, false},
		"the override removes it": {time.Second, -1, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, tool := runner(func(ctx context.Context, _ registry.Call) (registry.Result, error) {
					select {
					case <-ctx.Done():
						return registry.TextResult("so far"), context.Cause(ctx)
					case <-time.After(tt.takes):
						return registry.TextResult("done"), nil
					}
				})
				tool.Timeout, x.TimeLimit = tt.own, limit(tt.override)
				res, err := x.Execute(t.Context(), tool, registry.Call{})
				if errors.Is(err, ErrTimeout) != tt.over {
					t.Fatalf("error %v", err)
				}
				if tt.over && (!res.IsError || res.ErrorCategory != registry.ErrorTimeout || res.Text() != "so far" || res.Duration != time.Second) {
					t.Errorf("result %+v", res)
				}
				if !tt.over && (res.IsError || res.Text() != "done" || res.Duration != tt.takes) {
					t.Errorf("result %+v", res)
				}
			})
		})
	}
}

func TestTimeoutErrorNamesLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, tool := runner(func(ctx context.Context, _ registry.Call) (registry.Result, error) {
			<-ctx.Done()
			return registry.Result{}, ctx.Err()
		})
		x.TimeLimit = limit(3 * time.Second)
		res, err := x.Execute(t.Context(), tool, registry.Call{})
		var te *TimeoutError
		if !errors.As(err, &te) || te.Limit != 3*time.Second || !strings.Contains(registry.HintOf(err), "--timeout") {
			t.Errorf("error %v", err)
		}
		if strings.Contains(err.Error(), "server") {
			t.Errorf("a tool of no server: %v", err)
		}
		if !strings.Contains(res.Text(), "3s") || res.Summary != res.Text() {
			t.Errorf("text %q, summary %q", res.Text(), res.Summary)
		}
		tool.Server = "srv"
		if _, err := x.Execute(t.Context(), tool, registry.Call{}); err == nil || !strings.Contains(err.Error(), `on server "srv"`) {
			t.Errorf("error %v", err)
		}
	})
}

// TestResultBeatsTimeLimit checks that a result is used even if the time limit
// passes just before it is received.
func TestResultBeatsTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, tool := runner(func(ctx context.Context, _ registry.Call) (registry.Result, error) {
			<-ctx.Done()
			return registry.TextResult("done anyway"), nil
		})
		x.TimeLimit = limit(time.Second)
		if res, err := x.Execute(t.Context(), tool, registry.Call{}); err != nil || res.IsError {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

func TestCancel(t *testing.T) {
	interrupted := errors.New("interrupt")
	synctest.Test(t, func(t *testing.T) {
		cleaned := false
		x, tool := runner(func(ctx context.Context, _ registry.Call) (registry.Result, error) {
			<-ctx.Done()
			<-time.After(4 * time.Second)
			cleaned = true
			return registry.ErrorResult(registry.ErrorCancellation, "half"), nil
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(interrupted) })
		res, err := x.Execute(ctx, tool, registry.Call{})
		if !errors.Is(err, interrupted) || !cleaned || res.ErrorCategory != registry.ErrorCancellation || res.Text() != "half" {
			t.Errorf("%+v, %v, cleaned up: %t", res, err, cleaned)
		}
	})
}

func TestCanceledBeforeRun(t *testing.T) {
	x, tool := runner(func(context.Context, registry.Call) (registry.Result, error) {
		t.Error("it ran")
		return registry.Result{}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Execute(ctx, tool, registry.Call{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestToolThatIgnoresContextIsAbandoned checks that the call returns with the
// output so far.
func TestToolThatIgnoresContextIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emitted, gone := 0, make(chan struct{})
		x, tool := runner(func(_ context.Context, call registry.Call) (registry.Result, error) {
			defer close(gone)
			call.Emit(registry.TextContent("early"))
			<-time.After(time.Hour)
			call.Emit(registry.TextContent("late"))
			call.Progress(registry.Progress{})
			return registry.TextResult("late"), nil
		})
		x.TimeLimit = limit(time.Second)
		start := time.Now()
		res, err := x.Execute(t.Context(), tool, registry.Call{
			Emit:     func(registry.Content) { emitted++ },
			Progress: func(registry.Progress) { t.Error("progress after the end of the call") },
		})
		if took := time.Since(start); took != 6*time.Second || !errors.Is(err, ErrTimeout) || res.ErrorCategory != registry.ErrorTimeout {
			t.Errorf("after %s: %+v, %v", took, res, err)
		}
		<-gone
		if emitted != 1 {
			t.Errorf("%d pieces of output", emitted)
		}
	})
}

func TestPanicIsAnError(t *testing.T) {
	x, tool := runner(func(context.Context, registry.Call) (registry.Result, error) { panic("boom") })
	if _, err := x.Execute(t.Context(), tool, registry.Call{}); !errors.Is(err, ErrPanic) || !strings.Contains(err.Error(), `"t"`) {
		t.Errorf("in the tool: %v", err)
	}
	x, tool = runner(func(context.Context, registry.Call) (registry.Result, error) { return registry.Result{}, nil })
	x.Wrap = []registry.Middleware{func(registry.Tool) registry.Tool { panic("boom") }}
	if _, err := x.Execute(t.Context(), tool, registry.Call{}); !errors.Is(err, ErrPanic) {
		t.Errorf("in a wrap: %v", err)
	}
}

// Half of a surrogate pair in a result would break every later request of a conversation.
func TestStructuredResultIsText(t *testing.T) {
	x, tool := runner(func(context.Context, registry.Call) (registry.Result, error) {
		return registry.Result{Structured: json.RawMessage(`{"a\ud83d": ["\ud83d\udc4d", 1e2]}`), Meta: json.RawMessage(`{"b":"\udc4d"}`)}, nil
	})
	got, err := x.Execute(t.Context(), tool, registry.Call{})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"a�":["\ud83d\udc4d",1e2]}`; string(got.Structured) != want {
		t.Errorf("structured content %s, want %s", got.Structured, want)
	}
	if want := `{"b":"�"}`; string(got.Meta) != want {
		t.Errorf("_meta %s, want %s", got.Meta, want)
	}
}

func TestWrapOrder(t *testing.T) {
	var order []string
	wrap := func(name string) registry.Middleware {
		return func(t registry.Tool) registry.Tool {
			run := t.Run
			t.Run = func(ctx context.Context, c registry.Call) (registry.Result, error) {
				order = append(order, name)
				return run(ctx, c)
			}
			return t
		}
	}
	x, tool := runner(func(_ context.Context, c registry.Call) (registry.Result, error) {
		order = append(order, string(c.Params))
		c.Emit(registry.Content{}) // never nil
		c.Progress(registry.Progress{})
		return registry.Result{}, nil
	})
	x.Wrap = []registry.Middleware{wrap("hooks"), wrap("audit"), wrap("retry")}
	if _, err := x.Execute(t.Context(), tool, registry.Call{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"hooks", "audit", "retry", "{}"}, order); diff != "" {
		t.Error(diff)
	}
}

// TestTimeLimitIsInsideWrap checks that middleware observes a timeout, and that
// each retry gets the full time.
func TestTimeLimitIsInsideWrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []registry.ErrorCategory
		x, tool := runner(func(ctx context.Context, _ registry.Call) (registry.Result, error) {
			if len(seen) == 1 {
				return registry.TextResult("second"), nil
			}
			<-ctx.Done()
			return registry.Result{}, ctx.Err()
		})
		x.TimeLimit = limit(time.Second)
		x.Wrap = []registry.Middleware{func(t registry.Tool) registry.Tool {
			run := t.Run
			t.Run = func(ctx context.Context, c registry.Call) (registry.Result, error) {
				res, err := run(ctx, c)
				seen = append(seen, res.ErrorCategory)
				if errors.Is(err, ErrTimeout) {
					return run(ctx, c)
				}
				return res, err
			}
			return t
		}}
		res, err := x.Execute(t.Context(), tool, registry.Call{})
		if err != nil || res.Text() != "second" {
			t.Errorf("%+v, %v", res, err)
		}
		if diff := cmp.Diff([]registry.ErrorCategory{registry.ErrorTimeout}, seen); diff != "" {
			t.Error(diff)
		}
	})
}

func TestToolErrors(t *testing.T) {
	lost := errors.New("connection lost")
	x, tool := runner(func(context.Context, registry.Call) (registry.Result, error) {
		return registry.TextResult("half"), lost
	})
	if res, err := x.Execute(t.Context(), tool, registry.Call{}); !errors.Is(err, lost) || len(res.Content) > 0 {
		t.Errorf("%+v, %v", res, err)
	}
	x, tool = runner(func(context.Context, registry.Call) (registry.Result, error) {
		return registry.ErrorResult(registry.ErrorExecution, "no"), nil
	})
	res, err := x.Execute(t.Context(), tool, registry.Call{})
	if err != nil || !res.IsError || res.ErrorCategory != registry.ErrorExecution {
		t.Errorf("%+v, %v", res, err)
	}
	if failed, ok := errors.AsType[*ToolError](ResultError(res, nil)); !ok || failed.Category != registry.ErrorExecution {
		t.Errorf("the error of a result that reports one: %v", failed)
	}
	if err := ResultError(res, lost); err != lost {
		t.Errorf("the error of a call without a result: %v", err)
	}
	if err := ResultError(registry.TextResult("done"), nil); err != nil {
		t.Errorf("the error of a success: %v", err)
	}
}

// Whatever way a tool fails once its call is canceled, the call was canceled; but what it
// did all the same counts.
func TestCanceledWhileItEnds(t *testing.T) {
	for name, end := range map[string]func() (registry.Result, error){
		"an error":                 func() (registry.Result, error) { return registry.Result{}, errors.New("gone") },
		"a result that reports it": func() (registry.Result, error) { return registry.ErrorResult(registry.ErrorExecution, "gone"), nil },
		"a success":                func() (registry.Result, error) { return registry.TextResult("done"), nil },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		x, tool := runner(func(context.Context, registry.Call) (registry.Result, error) {
			cancel()
			return end()
		})
		res, err := x.Execute(ctx, tool, registry.Call{})
		if success := name == "a success"; success != (err == nil) || !success && (res.ErrorCategory != registry.ErrorCancellation || !errors.Is(err, context.Canceled)) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

func BenchmarkExecute(b *testing.B) {
	x, tool := runner(func(context.Context, registry.Call) (registry.Result, error) { return registry.Result{}, nil })
	tool.Timeout = time.Minute
	call := registry.Call{Params: json.RawMessage(`{"a":1}`)}
	for b.Loop() {
		if _, err := x.Execute(b.Context(), tool, call); err != nil {
			b.Fatal(err)
		}
	}
}

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
		{"not to be left", func(r *rig) { r.x.Decide = (&fixed{r.tr, []policy.Verdict{confinedVerdict()}}).Decide }, inside},
		{"denied by now", func(r *rig) { r.x.Decide = (&fixed{r.tr, []policy.Verdict{mayLeave(), deny()}}).Decide }, inside + " validate check decide"},
		{"not to be left by now", func(r *rig) { r.x.Decide = (&fixed{r.tr, []policy.Verdict{mayLeave(), confinedVerdict()}}).Decide }, inside + " validate check decide"},
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
	r.x.TimeLimit = limit(time.Minute)
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

// limit is a time limit for every tool.
func limit(d time.Duration) func(*registry.Tool) time.Duration {
	return func(*registry.Tool) time.Duration { return d }
}
