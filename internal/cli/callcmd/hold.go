package callcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// HeldError reports that the calls of a response were not run because some of them need answers. It
// wraps registry.ErrNeedsConfirmation.
type HeldError struct {
	Questions []engine.KeptQuestion
	// Ran is set if calls ran before a script stopped at its question. They are not repeated when
	// the same response is given again.
	Ran bool
}

func (e *HeldError) Error() string {
	ran := "nothing was run"
	if e.Ran {
		ran = "the calls before the question were run"
	}
	return ran + "; waiting for answers: " + text.Count(len(e.Questions), "question")
}

// Unwrap returns registry.ErrNeedsConfirmation.
func (e *HeldError) Unwrap() error { return registry.ErrNeedsConfirmation }

// Hint says what to do.
func (e *HeldError) Hint() string {
	return "answer them with toolreg approvals answer, then give the same response again"
}

// callHeld makes calls that were asked about, up to the first script that stops at a question. The
// error is then a *HeldError, and the response continues there when it is given again.
func (r *roundTrip) callHeld(ctx context.Context, calls []provider.Call,
	plan []planned, answers []provider.Answer, together int) error {
	for _, part := range segments(plan) {
		err := r.take(ctx, calls, part)
		if err == nil {
			r.callAll(ctx, calls, part, answers, together)
			if len(r.open) > 0 {
				err = &HeldError{r.open, r.ran.Load()}
			}
		}
		if err != nil {
			r.journal.Keep()
			return err
		}
	}
	r.journal.Drop(ctx)
	return nil
}

// once makes a call, unless it finished when the same response was given before.
func (r *roundTrip) once(p planned, call func() (registry.Result, error)) (registry.Result, error) {
	if r.journal == nil {
		return call()
	}
	return r.journal.Once(p.name, p.params, func() (registry.Result, bool, error) {
		result, err := call()
		return result, false, err
	})
}

// segments divides calls into groups that are held together. Each ends with a composite, whose
// script may ask about further calls.
func segments(plan []planned) [][]planned {
	var all [][]planned
	for len(plan) > 0 {
		n := 1 + slices.IndexFunc(plan, func(p planned) bool { return p.Tool.Source == registry.SourceComposite })
		if n == 0 {
			n = len(plan)
		}
		all, plan = append(all, plan[:n]), plan[n:]
	}
	return all
}

// take asks about calls that are about to run, unless that was done before, and takes the answers.
func (r *roundTrip) take(ctx context.Context, calls []provider.Call, plan []planned) error {
	for range 2 { // twice, because another run may take the answers first
		if err := r.askAll(ctx, calls, plan); err != nil {
			return err
		}
		var held []*exec.Held
		for i := range plan {
			if plan[i].held != nil {
				held = append(held, plan[i].held)
			}
		}
		if claimed, err := r.Session.Calls.Claim(ctx, held...); claimed || err != nil {
			return err
		}
		for i := range plan {
			plan[i].held = nil
		}
	}
	return fmt.Errorf("the calls were not run, because the answers cannot be taken: %w", registry.ErrNeedsConfirmation)
}

// askAll asks about all calls that did not finish when the response was given before and were not
// asked about yet. If one has no answer, the error is a *HeldError.
func (r *roundTrip) askAll(ctx context.Context, calls []provider.Call, plan []planned) error {
	var open []engine.KeptQuestion
	copies, files := map[string]int{}, map[string]bool{}
	finished := map[string]int{}
	for i := range plan {
		p := &plan[i]
		if p.held != nil {
			continue
		}
		call := p.name + "\x00" + jsonx.Canonical(p.params)
		if finished[call]++; finished[call] <= r.journal.Left(p.name, p.params) {
			continue
		}
		key := p.Tool.Source + "\x00" + p.Tool.Name + "\x00" + jsonx.Canonical(engine.Restored(p.Tool, p.params))
		ctx, request := r.begin(ctx, &calls[p.index], *p)
		h, err := r.Session.Calls.Hold(ctx, p.Found, request, copies[key])
		if err != nil {
			return err
		}
		copies[key]++
		h.Again = h.File != "" && files[h.File]
		files[h.File] = true
		if h.Open == nil {
			p.held = h
			continue
		}
		if h.Open.Kept == nil {
			return h.Open
		}
		if open, err = addQuestion(open, calls[p.index], *h.Open.Kept); err != nil {
			return err
		}
	}
	if len(open) > 0 {
		return &HeldError{Questions: open}
	}
	return nil
}

// addQuestion appends a kept question about a call, or in the script that it runs.
func addQuestion(list []engine.KeptQuestion, call provider.Call,
	kept policy.KeptQuestion) ([]engine.KeptQuestion, error) {
	q, err := engine.NewKeptQuestion(kept)
	q.CallID = call.ID()
	return append(list, q), err
}

// heldInScript notes the question at which the script of a call ended. It returns false if
// the call ended otherwise.
func (r *roundTrip) heldInScript(call provider.Call, err error) bool {
	ended, ok := errors.AsType[*exec.ScriptError](err)
	if !ok || !r.Hold {
		return false
	}
	open, ok := errors.AsType[*exec.NeedsConfirmation](err)
	if !ok || open.Kept == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list, err := addQuestion(r.open, call, *open.Kept)
	if err != nil {
		return false
	}
	r.open = list
	if ended.Done != "" {
		r.ran.Store(true)
	}
	return true
}
