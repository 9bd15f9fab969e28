package exec

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/tracing"
)

// This file has the steps of a call, in order.

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

// Hold asks about a call as [Executor.Execute] does, without running it. A call that will be
// refused, or that needs no answer, has no questions. copy is the number of equal calls that
// are held before this one, each of which needs its own answer. The error is the cause
// of ctx.
func (x *Executor) Hold(ctx context.Context, t *registry.Tool, call registry.Call, copy int) (*Held, error) {
	h := &Held{copy: copy}
	call, v, err := x.vet(ctx, t, x.prepared(t, call), h)
	if err == nil && v.Decision == policy.Ask {
		_, err = x.dialog(h, true).confirm(ctx, t, call, v)
		h.Open, _ = errors.AsType[*NeedsConfirmation](err)
	}
	return h, context.Cause(ctx)
}

// prepared returns a call with its own copy of the params, and without live output if hooks must
// screen the result first.
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

// execute makes a call and returns its record. A step that refuses the call ends it. Only this
// function writes the record: each step returns its findings.
func (x *Executor) execute(ctx context.Context, t *registry.Tool, call registry.Call, h *Held) Record {
	r := Record{Tool: t, Start: time.Now()}
	var err error

	// Check the params, decide, and pass the call to the hooks.
	if r.Call, r.Verdict, err = x.vet(ctx, t, call, h); err != nil {
		return r.refused(err)
	}

	// Ask somebody if the verdict requires it.
	agreed, asks := agreement{}, r.Verdict.Decision == policy.Ask
	if asks {
		began := time.Now()
		agreed, err = x.dialog(h, false).confirm(ctx, t, r.Call, r.Verdict)
		r.Asked, r.Call, r.Verdict.Confine = time.Since(began), agreed.call, agreed.confine
		if err != nil {
			return r.refused(err)
		}
	}

	// Check that it can run as decided, and now.
	if r.Verdict.Confine.On && x.Confine == nil {
		return r.refused(&Denied{Tool: t.Name,
			Reason: "it must run in the sandbox, which is not available", Origin: r.Verdict.Confine.By})
	}
	if x.Quota != nil {
		if err := x.Quota(ctx, t); err != nil {
			return r.refused(err)
		}
	}
	if !asks && x.Unattended != nil { // a question that is kept about it needs no answer any more
		if sent, err := asSent(t, r.Call); err == nil {
			x.Unattended.Settled(ctx, t, sent, false)
		}
	}

	// Run it, and once more outside the sandbox if that has made it fail and a person agrees.
	r.Ran = true
	r.Call.Admit = x.admitting(t, r.Call, asks)
	r.Result, r.Err = x.runAdmitted(ctx, t, r.Call, r.Verdict.Confine)
	if r.Err == nil && r.Result.IsError && len(r.Result.Denied) > 0 && r.Verdict.Confine.Outside {
		began := time.Now()
		err := x.confirmOutside(ctx, t, r.Call, r.Result)
		r.Asked += time.Since(began)
		if r.Outside = err == nil; r.Outside {
			r.Result, r.Err = x.runOutside(ctx, t, r.Call, r.Result)
		} else {
			r.Result, r.Err = staysInside(ctx, t, r.Result, err)
		}
	}
	r.Result = agreed.edit.addTo(r.Result)
	return r
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

// confirmOutside returns nil only if a call that failed because of the sandbox, with the result
// first, may still run and a person wants it to run outside.
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

// runOutside runs such a call again outside the sandbox.
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
	return second.WithNote(note), err
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
