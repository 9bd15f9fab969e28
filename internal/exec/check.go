package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

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

// vet checks a call, decides about it, and passes it to the hooks, unless h has their answers.
// Params that hooks change pass every check again, including the decision.
func (x *Executor) vet(ctx context.Context, t *registry.Tool,
	call registry.Call, h *Held) (registry.Call, policy.Verdict, error) {
	call, v, err := x.admit(ctx, t, call)
	if err != nil || x.Hooks == nil {
		return call, v, err
	}
	params, asking, err := x.before(ctx, t, call, h)
	if err == nil && params != nil && !bytes.Equal(params, call.Params) {
		call.Params = bytes.Clone(params)
		if call, v, err = x.admit(ctx, t, call); err != nil {
			err = fmt.Errorf("with the params from a beforeCall hook: %w", err)
		}
	}
	return call, tightened(v, asking), err
}

// admit checks params and decides. It returns the call with the verdict's restrictions on how the
// tool reads them. An error means that the call must not run.
func (x *Executor) admit(ctx context.Context, t *registry.Tool,
	call registry.Call) (registry.Call, policy.Verdict, error) {
	var v policy.Verdict
	err := Check(ctx, x.Validate, t, call)
	if err == nil {
		if v = x.Decide(ctx, t, call); v.Decision == policy.Deny {
			err = denied(t, v)
		}
	}
	call.Hides, call.HidesKey, call.Paths = v.Hides, v.HidesKey, v.Paths
	return call, v, err
}

// denied returns the error of a call that a verdict denies.
func denied(t *registry.Tool, v policy.Verdict) *Denied {
	return &Denied{Tool: t.Name, Reason: v.Reason, Origin: v.Origin, Later: v.Later}
}

// before passes a call to the hooks. Those of a call that was held run once.
func (x *Executor) before(ctx context.Context, t *registry.Tool,
	call registry.Call, h *Held) (json.RawMessage, registry.Asking, error) {
	if h.hooked {
		return h.params, h.asking, nil
	}
	params, asking, err := x.Hooks.Before(ctx, t, call)
	if err == nil {
		h.hooked, h.params, h.asking = true, params, asking
	}
	return params, asking, err
}

// tightened returns a verdict that requires confirmation by a person. It never
// allows more than before, and an approval cannot replace the person's answer.
func tightened(v policy.Verdict, asking registry.Asking) policy.Verdict {
	if asking.Reason == "" || v.Decision == policy.Deny || v.Agreed {
		return v
	}
	v.Decision, v.Reason, v.Origin = policy.Ask, asking.Reason, asking.Origin
	v.Rule, v.Approval, v.Scopes, v.Changes, v.Firm = nil, "", nil, nil, true
	return v
}

// admitting returns the function that decides about the params that a running call leads to; see
// [registry.Call.Admit]. confirmed says that a person has confirmed the call.
func (x *Executor) admitting(t *registry.Tool, call registry.Call,
	confirmed bool) func(context.Context, json.RawMessage, bool) error {
	return func(ctx context.Context, params json.RawMessage, agreed bool) error {
		next := call
		next.Params = params
		vetted, v, err := x.vet(ctx, t, next, &Held{})
		switch {
		case err != nil:
			return err
		case !bytes.Equal(vetted.Params, params):
			return &Denied{Tool: t.Name, Reason: "a hook changes its params", Origin: "hook"}
		case v.Decision == policy.Ask && (!confirmed || !agreed || v.Rule != nil && len(v.Scopes) == 0 || v.Firm):
			return &NeedsConfirmation{Tool: t.Name, Verdict: v, Hint: Hint(t, v)}
		}
		return nil
	}
}
