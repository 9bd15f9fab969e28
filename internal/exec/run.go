package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/stack"
)

const defaultGrace = 5 * time.Second

// limited returns the tool's Run with its time limit and with panics caught.
func (x *Executor) limited(t *registry.Tool) func(context.Context, registry.Call) (registry.Result, error) {
	limit := t.Timeout
	if x.Limits != nil {
		limit = cmp.Or(x.Limits(t), limit)
	}
	limit = cmp.Or(x.Timeout, limit)
	inner := t.Run
	return func(ctx context.Context, call registry.Call) (registry.Result, error) {
		over := &TimeoutError{Tool: t.Name, Server: t.Server, Limit: limit}
		if limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, limit, over)
			defer cancel()
		}
		result, err := x.runWithGrace(ctx, t, inner, call)
		if failed := err != nil || result.IsError; failed && context.Cause(ctx) == error(over) {
			return over.Stopped(result), over
		}
		return result, err
	}
}

type outcome struct {
	result registry.Result
	err    error
}

// runWithGrace runs the tool and waits until it returns. After ctx is done it waits
// only for the grace period, because a tool that ignores its context must not block
// the program.
func (x *Executor) runWithGrace(ctx context.Context, t *registry.Tool,
	run func(context.Context, registry.Call) (registry.Result, error), call registry.Call) (registry.Result, error) {
	done := make(chan outcome, 1)
	go func() {
		stack.Reserve()
		var o outcome
		o.err = catchPanic(t, "calling a tool", func() (err error) { o.result, err = run(ctx, call); return err })
		done <- o
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
	}
	grace := x.Grace
	if grace <= 0 {
		grace = defaultGrace
	}
	select {
	case o := <-done:
		return o.result, o.err
	case <-time.After(grace):
		return registry.Result{}, fmt.Errorf("calling %q: it did not stop within %s: %w",
			t.Name, grace, context.Cause(ctx))
	}
}

// stopped marks a result as stopped and keeps its content.
func stopped(r registry.Result, category registry.ErrorCategory, text string) registry.Result {
	r.IsError, r.ErrorCategory = true, category
	if len(r.Content) == 0 && r.Display.IsZero() {
		r.Content = []registry.Content{registry.TextContent(text)}
	}
	r.Summary = cmp.Or(r.Summary, text)
	return r
}

// Stopped returns the result of a call that reached the limit, with what it has of r.
func (e *TimeoutError) Stopped(r registry.Result) registry.Result {
	return stopped(r, registry.ErrorTimeout, fmt.Sprintf("the call reached its time limit of %s", e.Limit))
}

// canceled returns the outcome of a call whose context ended.
func canceled(t *registry.Tool, r registry.Result, cause error) (registry.Result, error) {
	return stopped(r, registry.ErrorCancellation, "the call was canceled"), fmt.Errorf("calling %q: %w", t.Name, cause)
}

// emitter passes on the output of a running tool, but nothing after the call is
// over: an abandoned tool must not write to the output of a later call.
type emitter struct {
	mu       sync.Mutex
	closed   bool
	emit     func(registry.Content)
	progress func(registry.Progress)
}

// Emit passes on one piece of output.
func (o *emitter) Emit(c registry.Content) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed && o.emit != nil {
		o.emit(c)
	}
}

// Progress passes on one progress notification.
func (o *emitter) Progress(p registry.Progress) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed && o.progress != nil {
		o.progress(p)
	}
}

func (o *emitter) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

// offerOutside asks whether a call that failed because of the sandbox runs again
// outside. If not, it returns the result of the first run.
func (x *Executor) offerOutside(ctx context.Context, r *Record, first registry.Result) (registry.Result, error) {
	start := time.Now()
	err := x.confirmOutside(ctx, r, first)
	r.Asked += time.Since(start)
	if cause := context.Cause(ctx); cause != nil {
		return canceled(r.Tool, first, cause)
	}
	if err != nil {
		if denied, ok := errors.AsType[*Denied](err); ok && denied.Said != "" {
			first = first.WithNote("The user declined to run it outside the sandbox. The reason given: " + denied.Said)
		}
		return first, nil
	}
	r.Outside = true
	if r.Call.Emit != nil {
		r.Call.Emit(registry.TextContent("[again, outside the sandbox]\n"))
	}
	second, err := x.run(ctx, r.Tool, r.Call, policy.Confinement{})
	second.Duration += first.Duration
	if err != nil && !second.IsError {
		return second, err
	}
	note := fmt.Sprintf("This is the second run, outside the sandbox, which the user allowed. The first run, in the sandbox, failed (%s). The sandbox denied: %s",
		first.Summary, strings.Join(first.Denied, "; "))
	return second.WithShownNote(note), err
}

// confirmOutside returns nil only if the call may still run and a person wants it to
// run outside the sandbox.
func (x *Executor) confirmOutside(ctx context.Context, r *Record, first registry.Result) error {
	person := x.person()
	if person == nil {
		return registry.ErrNeedsConfirmation
	}
	v, err := x.admit(ctx, r.Tool, r.Call)
	if err != nil {
		return err
	}
	if !v.Confine.Outside {
		return registry.ErrDenied
	}
	q := &Question{Tool: r.Tool, Call: r.Call, Denied: first.Denied, Choices: []Choice{Yes, No}}
	q.Verdict = policy.Verdict{Commands: v.Commands,
		Reason: fmt.Sprintf("it failed in the sandbox (%s); outside, it can do all that you can", first.Summary)}
	if v.Confine.Changed != nil {
		if changed := v.Confine.Changed(); len(changed) > 0 {
			q.Verdict.Reason += fmt.Sprintf("; a sandboxed program may have changed %s since you saw it",
				strings.Join(changed, ", "))
		}
	}
	if q.Preview, err = x.preview(ctx, r.Tool, r.Call); err != nil {
		return err
	}
	defer person.Turn()()
	_, err = x.askPerson(ctx, person, q, nil)
	return err
}
