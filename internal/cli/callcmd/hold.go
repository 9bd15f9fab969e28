package callcmd

import (
	"context"
	"fmt"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

// HeldError reports that no call of a response was run, because some need answers. It wraps
// registry.ErrNeedsConfirmation.
type HeldError struct{ Questions []engine.KeptQuestion }

func (e *HeldError) Error() string {
	return "nothing was run; waiting for answers: " + cli.Counted(len(e.Questions), "question")
}

// Unwrap returns registry.ErrNeedsConfirmation.
func (e *HeldError) Unwrap() error { return registry.ErrNeedsConfirmation }

// Hint says what to do.
func (e *HeldError) Hint() string {
	return "answer them with toolreg approvals answer, then give the same response again"
}

// hold asks about all calls before any is run, and takes the answers. reads is set if all
// calls only read.
func (r *roundTrip) hold(ctx context.Context, calls []provider.Call, plan []planned, reads bool) error {
	if r.Line != nil && !r.Parallel && !reads {
		if err := r.Line.Wait(ctx); err != nil {
			return err
		}
	}
	for range 2 { // if another run is faster, a question is open again
		held, err := r.askAll(ctx, calls, plan)
		if err != nil {
			return err
		}
		if claimed, err := r.Session.Calls.Claim(ctx, held...); claimed || err != nil {
			return err
		}
	}
	return fmt.Errorf("nothing was run, because the answers cannot be taken: %w", registry.ErrNeedsConfirmation)
}

// askAll asks about all calls. The error is a *HeldError if one has no answer.
func (r *roundTrip) askAll(ctx context.Context, calls []provider.Call, plan []planned) ([]*exec.Held, error) {
	var held []*exec.Held
	var open []engine.KeptQuestion
	copies, files := map[string]int{}, map[string]bool{}
	for i := range plan {
		p := &plan[i]
		key := p.Tool.Source + "\x00" + p.Tool.Name + "\x00" + jsonx.Canonical(engine.Restored(p.Tool, p.params))
		ctx, request := r.begin(ctx, *p)
		h, err := r.Session.Calls.Hold(ctx, p.Found, request, copies[key])
		if err != nil {
			return nil, err
		}
		copies[key]++
		h.Again = h.File != "" && files[h.File]
		files[h.File] = true
		if h.Open != nil {
			if h.Open.Kept == nil {
				return nil, h.Open
			}
			q, err := engine.NewKeptQuestion(*h.Open.Kept)
			if err != nil {
				return nil, err
			}
			q.CallID = calls[p.index].ID()
			open = append(open, q)
		}
		p.held = h
		held = append(held, h)
	}
	if len(open) > 0 {
		return nil, &HeldError{open}
	}
	return held, nil
}
