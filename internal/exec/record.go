package exec

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

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
