package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/stack"
	"github.com/toolreg/toolreg/internal/timing"
)

// runAdmitted makes a call that was admitted. The wrappers are outermost, then the sandbox,
// the time limit and the tool.
func (x *Executor) runAdmitted(ctx context.Context, t *registry.Tool,
	call registry.Call, confine policy.Confinement) (registry.Result, error) {
	var out output
	defer out.close()
	call.Emit, call.Progress = until(&out, call.Emit), until(&out, call.Progress)

	tool := *t
	tool.Run = x.limited(t)
	if confine.On {
		tool = x.Confine(tool, confine)
	}
	var result registry.Result
	start := time.Now()
	err := catchPanic(t, "calling a tool", func() (err error) {
		for i := len(x.Wrap) - 1; i >= 0; i-- {
			tool = x.Wrap[i](tool)
		}
		result, err = tool.Run(ctx, call)
		return err
	})
	if x.Recorded == nil || result.Duration == 0 { // a recorded call took as long as it says
		result.Duration = time.Since(start)
	}
	failed := err != nil || result.IsError
	if cause := context.Cause(ctx); failed && cause != nil && !errors.Is(err, ErrTimeout) {
		return canceled(t, result, cause)
	}
	if err != nil && !errors.Is(err, ErrTimeout) {
		return registry.Result{Duration: result.Duration}, err
	}
	return result, err
}

// grace is how long a tool may clean up after its context is done. A tool that takes longer is
// abandoned.
const grace = 5 * time.Second

// limited returns the tool's Run with its time limit and with panics caught.
func (x *Executor) limited(t *registry.Tool) func(context.Context, registry.Call) (registry.Result, error) {
	var given time.Duration
	if x.TimeLimit != nil {
		given = x.TimeLimit(t)
	}
	limit := cmp.Or(given, t.Timeout)
	return func(ctx context.Context, call registry.Call) (registry.Result, error) {
		call.Limit = given
		over := &TimeoutError{Tool: t.Name, Server: t.Server, Limit: limit}
		ctx, cancel := timing.Limit(ctx, limit, over)
		defer cancel()
		result, err := runWithGrace(ctx, t, call)
		result.Structured = registry.MendSurrogates(result.Structured)
		result.Meta = registry.MendSurrogates(result.Meta)
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

// stoppedResult marks a result as stopped and keeps its content.
func stoppedResult(r registry.Result, category registry.ErrorCategory, text string) registry.Result {
	r.IsError, r.ErrorCategory = true, category
	if len(r.Content) == 0 && r.Display.IsZero() {
		r.Content = []registry.Content{registry.TextContent(text)}
	}
	r.Summary = cmp.Or(r.Summary, text)
	return r
}

// Stopped returns the result of a call that reached the limit, with the content of r.
func (e *TimeoutError) Stopped(r registry.Result) registry.Result {
	return stoppedResult(r, registry.ErrorTimeout, fmt.Sprintf("the call reached its time limit of %s", e.Limit))
}

// canceled returns the outcome of a call whose context ended.
func canceled(t *registry.Tool, r registry.Result, cause error) (registry.Result, error) {
	return stoppedResult(r, registry.ErrorCancellation, "the call was canceled"), fmt.Errorf("calling %q: %w", t.Name, cause)
}

// output is that of a running tool. It ends with the call: an abandoned tool must not write to the
// output of a later one.
type output struct {
	mu     sync.Mutex
	closed bool
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

// until returns emit, which may be nil, as a function that does nothing after out is closed.
func until[T any](out *output, emit func(T)) func(T) {
	return func(v T) {
		out.mu.Lock()
		defer out.mu.Unlock()
		if !out.closed && emit != nil {
			emit(v)
		}
	}
}
