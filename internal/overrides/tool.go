package overrides

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/toolreg/toolreg/internal/registry"
)

// translate makes the functions of out, a copy of t, accept calls in the new
// shape.
func translate(t, out *registry.Tool, tr *translation) {
	out.Wire, out.Shapes = tr.wire, tr.shapes
	out.Check = checked(t, tr)
	out.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		w, err := tr.wire(call)
		if err != nil {
			return registry.Result{}, err
		}
		w.Admit = func(ctx context.Context, params json.RawMessage, agreed bool) error {
			shaped, edited, err := tr.shape(params)
			if err == nil && edited != nil {
				err = errors.New("it leads to other values of params that an override fixes")
			}
			if err != nil {
				return err
			}
			return call.Admit(ctx, shaped, agreed)
		}
		return t.Run(ctx, w)
	}
	if t.Subject != nil {
		out.Subject = func(call registry.Call) (registry.Subject, error) {
			w, err := tr.wire(call)
			if err != nil {
				return registry.Subject{}, err
			}
			return t.Subject(w)
		}
	}
	if t.Confirm != nil {
		out.Confirm = func(ctx context.Context, call registry.Call) registry.Asking {
			w, err := tr.wire(call)
			if err != nil {
				return registry.Asking{Reason: err.Error(), Origin: tr.origin}
			}
			return t.Confirm(ctx, w)
		}
	}
	if t.Preview != nil {
		out.Preview = func(ctx context.Context, call registry.Call) (registry.Preview, error) {
			w, err := tr.wire(call)
			if err != nil {
				return registry.Preview{}, err
			}
			return t.Preview(ctx, w)
		}
	}
	if t.Revise != nil {
		out.Revise = reviser(t, tr)
	}
}

// checked returns a function that checks a call in the new shape: first the names
// of its params, then the translated call against the tool's original schema and
// its own check.
func checked(t *registry.Tool, tr *translation) func(context.Context, registry.Call) error {
	own := registry.NewValidator(t.InputSchema)
	return func(ctx context.Context, call registry.Call) error {
		w, err := tr.wire(call)
		if err != nil {
			return err
		}
		if err = own.Check(ctx, tr.tool, w.Params); err == nil && t.Check != nil {
			err = t.Check(ctx, w)
		}
		return tr.inShape(err)
	}
}

// reviser returns a function that converts a person's edit to a call in the new
// shape. A person may change params that calls cannot set.
func reviser(t *registry.Tool, tr *translation) func(context.Context, registry.Call, string) (registry.Call, error) {
	return func(ctx context.Context, call registry.Call, content string) (registry.Call, error) {
		w, err := tr.wire(call)
		if err != nil {
			return call, err
		}
		next, err := t.Revise(ctx, w, content)
		if err != nil {
			return call, err
		}
		next.Params, next.Edited, err = tr.shape(next.Params)
		return next, err
	}
}
