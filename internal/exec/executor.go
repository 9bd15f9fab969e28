package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/tracing"
)

// Executor runs calls. Its fields are in the order in which a call needs them; set them before the
// first call. Execute is safe for concurrent use if the values of the fields are.
type Executor struct {
	// Validate checks params against the input schema, as registry.Validate
	// does. Required.
	Validate func(context.Context, *registry.Tool, json.RawMessage) error
	// Decide decides whether a call may run, as [policy.Policy.Decide] does. Required.
	Decide func(context.Context, *registry.Tool, registry.Call) policy.Verdict
	// Hooks may refuse a call, change its params and change its result. Without them nothing does.
	Hooks Hooks
	// Confirmer returns the Confirmer to use. It is called only if there is a
	// question. If it is nil or returns nil, nobody can be asked.
	Confirmer func() Confirmer
	// Unattended answers questions that no person could be asked. If nil, such calls fail.
	Unattended Unattended
	// Recorded has the answers of an earlier run and keeps those of this one. A nil Recorded has
	// none and keeps none.
	Recorded Answers
	// Remember stores an "always" answer. If nil, that answer is not offered.
	Remember func(context.Context, *registry.Tool, policy.Scope) error
	// Quota may refuse a call that is about to run, with a *LimitedError. A nil Quota refuses none.
	Quota func(context.Context, *registry.Tool) error
	// Wrap wraps every tool; the first middleware is the outermost. The time limit is
	// inside all of them.
	Wrap []registry.Middleware
	// Confine returns a tool whose Run confines its program. It is called for each
	// call whose verdict requires the sandbox, and is inside all of Wrap. If nil,
	// such calls are refused.
	Confine func(registry.Tool, policy.Confinement) registry.Tool
	// TimeLimit returns what replaces a tool's own time limit. Zero keeps it; a negative value
	// means no limit. Without it tools have their own limits.
	TimeLimit func(*registry.Tool) time.Duration
	// Observe receives every finished call, including refused ones, before the hooks
	// receive its result. A nil Observe drops them.
	Observe func(context.Context, Record)
	// Warn reports problems that do not affect the call, such as an answer that
	// could not be stored. A nil Warn drops them.
	Warn func(registry.Diagnostic)
}

// Execute makes one call: it validates the params, decides, asks if necessary, and
// runs the tool. The params that were validated and shown are those that the tool
// receives, byte for byte.
//
// Errors: *registry.ArgsError, *Denied, *NeedsConfirmation, *LimitedError, *TimeoutError, the
// cause of ctx, or the error of Run. If the call timed out or was canceled, the
// result is also set, with IsError and its category; with other errors it is zero.
func (x *Executor) Execute(ctx context.Context, t *registry.Tool, call registry.Call) (registry.Result, error) {
	return x.ExecuteHeld(ctx, t, call, nil)
}

// ExecuteHeld is like Execute for a call that was held: the answers that were collected are
// not asked for again. With a nil h the call was not held.
func (x *Executor) ExecuteHeld(ctx context.Context, t *registry.Tool,
	call registry.Call, h *Held) (registry.Result, error) {
	ctx, span := tracing.Start(ctx, tracing.Call, "execute_tool")
	defer span.End()
	if h == nil {
		h = &Held{}
	}
	return x.finish(ctx, x.execute(ctx, t, x.prepared(t, call), h))
}

// prepared returns a call with params of its own, and without output that hooks have to
// screen first.
func (x *Executor) prepared(t *registry.Tool, call registry.Call) registry.Call {
	call.Params = bytes.Clone(call.Params)
	if len(call.Params) == 0 {
		call.Params = json.RawMessage("{}")
	}
	if x.Hooks != nil && x.Hooks.Screens(t) {
		call.Emit = nil
	}
	return call
}

// Check checks the params of a call as Execute does before the decision: with validate, which checks
// them against the schema, then with the tool's own check.
func Check(ctx context.Context, validate func(context.Context, *registry.Tool, json.RawMessage) error,
	t *registry.Tool, call registry.Call) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("calling %q: %w", t.Name, err)
	}
	if err := validate(ctx, t, call.Params); err != nil {
		return err
	}
	if t.Check == nil {
		return nil
	}
	return catchPanic(t, "checking params", func() error { return t.Check(ctx, call) })
}

// catchPanic calls a function of a tool and converts a panic to an error.
func catchPanic(t *registry.Tool, doing string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s of %q: %w: %v", doing, t.Name, ErrPanic, p)
		}
	}()
	return f()
}

// ErrPanic reports that a tool's own code panicked; the rest of the program
// continues.
var ErrPanic = errors.New("panic in the tool")

// Record is the outcome of one call, made or refused.
type Record struct {
	Tool    *registry.Tool
	Call    registry.Call // as last checked; hooks and the person may have changed it
	Verdict policy.Verdict
	Start   time.Time
	Asked   time.Duration   // time that the person took to answer before the run
	Ran     bool            // whether the tool was started
	Outside bool            // it failed in the sandbox, and Result is of a second run outside
	Result  registry.Result // zero if the call was not made
	Err     error           // error of the call, before afterCall hooks
}

// Hooks run the programs of the setting hooks around a call. An error of Before
// stops the call; an error of After withholds its result.
type Hooks interface {
	// Before returns the params to use, or nil to leave them unchanged, and why a
	// person has to confirm the call.
	Before(context.Context, *registry.Tool, registry.Call) (json.RawMessage, registry.Asking, error)
	// After returns the result to use.
	After(context.Context, *registry.Tool, registry.Call, registry.Result) (registry.Result, error)
	// Screens reports whether After checks the results of a tool. If so, no output
	// may be shown before.
	Screens(*registry.Tool) bool
}

type observerKey struct{}

// Observing returns a context in which observe also receives every finished call, as
// [Executor.Observe] does: first the steps of a composite, then the composite.
func Observing(ctx context.Context, observe func(Record)) context.Context {
	return context.WithValue(ctx, observerKey{}, observe)
}

// finish reports a call to the observers and passes its result to the hooks.
func (x *Executor) finish(ctx context.Context, r Record) (registry.Result, error) {
	if x.Observe != nil {
		x.Observe(ctx, r)
	}
	if observe, ok := ctx.Value(observerKey{}).(func(Record)); ok {
		observe(r)
	}
	if x.Hooks == nil || r.Err != nil && !r.Result.IsError || r.Result.Detached {
		return r.Result, r.Err
	}
	result, err := x.Hooks.After(ctx, r.Tool, r.Call, r.Result)
	if err != nil {
		return registry.Result{}, err
	}
	result.Duration = r.Result.Duration
	return result, r.Err
}
