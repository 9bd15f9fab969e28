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

// grace is how long a tool may clean up after its context is done. A tool that takes longer is
// abandoned.
const grace = 5 * time.Second

// limited returns the tool's Run with its time limit and with panics caught.
func (x *Executor) limited(t *registry.Tool) func(context.Context, registry.Call) (registry.Result, error) {
	limit := t.Timeout
	if x.TimeLimit != nil {
		limit = cmp.Or(x.TimeLimit(t), limit)
	}
	return func(ctx context.Context, call registry.Call) (registry.Result, error) {
		over := &TimeoutError{Tool: t.Name, Server: t.Server, Limit: limit}
		if limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, limit, over)
			defer cancel()
		}
		result, err := runWithGrace(ctx, t, call)
		if failed := err != nil || result.IsError; failed && context.Cause(ctx) == error(over) {
			return over.Stopped(result), over
		}
		return result, err
	}
}

// runWithGrace runs the tool and waits until it returns. After ctx is done it waits
// only for the grace period, because a tool that ignores its context must not block
// the program.
func runWithGrace(ctx context.Context, t *registry.Tool, call registry.Call) (registry.Result, error) {
	type outcome struct {
		result registry.Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		stack.Reserve()
		var o outcome
		o.err = catchPanic(t, "calling a tool", func() (err error) { o.result, err = t.Run(ctx, call); return err })
		done <- o
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
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

// runOutside runs a call again outside the sandbox, which has made first fail.
func (x *Executor) runOutside(ctx context.Context, t *registry.Tool,
	call registry.Call, first registry.Result) (registry.Result, error) {
	if call.Emit != nil {
		call.Emit(registry.TextContent("[again, outside the sandbox]\n"))
	}
	second, err := x.runAdmitted(ctx, t, call, policy.Confinement{})
	second.Duration += first.Duration
	if err != nil && !second.IsError {
		return second, err
	}
	note := fmt.Sprintf("This is the second run, outside the sandbox, which the user allowed. "+
		"The first run, in the sandbox, failed (%s). The sandbox denied: %s",
		first.Summary, strings.Join(first.Denied, "; "))
	return second.WithShownNote(note), err
}

// staysInside returns the outcome of a call that failed in the sandbox and does not run outside.
func staysInside(ctx context.Context, t *registry.Tool, first registry.Result, why error) (registry.Result, error) {
	if cause := context.Cause(ctx); cause != nil {
		return canceled(t, first, cause)
	}
	if denied, ok := errors.AsType[*Denied](why); ok && denied.Said != "" {
		first = first.WithNote("The user declined to run it outside the sandbox. The reason given: " + denied.Said)
	}
	return first, nil
}

// confirmOutside returns nil only if a call may still run and a person wants it to run outside the
// sandbox, which has made first fail.
func (x *Executor) confirmOutside(ctx context.Context, t *registry.Tool,
	call registry.Call, first registry.Result) error {
	d := x.dialog(&Held{}, false)
	if d.person == nil {
		return registry.ErrNeedsConfirmation
	}
	_, v, err := x.admit(ctx, t, call)
	if err != nil {
		return err
	}
	if !v.Confine.Outside {
		return registry.ErrDenied
	}
	q := &Question{Tool: t, Call: call, Denied: first.Denied, Choices: []Choice{Yes, No}}
	q.Verdict = policy.Verdict{Commands: v.Commands,
		Reason: fmt.Sprintf("it failed in the sandbox (%s); outside, it can do all that you can", first.Summary)}
	if v.Confine.Changed != nil {
		if changed := v.Confine.Changed(); len(changed) > 0 {
			q.Verdict.Reason += fmt.Sprintf("; a sandboxed program may have changed %s since you saw it",
				strings.Join(changed, ", "))
		}
	}
	if q.Preview, err = x.preview(ctx, t, call); err != nil {
		return err
	}
	defer d.person.Turn()()
	_, err = d.ask(ctx, q)
	return cmp.Or(err, context.Cause(ctx))
}
