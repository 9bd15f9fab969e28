package exec

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// Unattended answers questions that no person could be asked, and keeps those that nobody
// answers.
type Unattended interface {
	// Answered returns the answer to a kept question that is the same as q, and its id.
	Answered(ctx context.Context, q *Question) (a Answer, id string, ok bool)
	// Claim takes the answers with these ids, so that no other call gets them: all of
	// them, or none if one is not there any more.
	Claim(ctx context.Context, ids ...string) bool
	// Absent answers a question that no person could be asked. If it cannot, it keeps
	// the question and returns it, or nil if that is not possible either.
	Absent(ctx context.Context, q *Question) (a Answer, kept *policy.KeptQuestion, ok bool)
	// Keep keeps a question while a person is asked, and returns its id; "" if that is not
	// possible.
	Keep(ctx context.Context, q *Question) (id string)
	// Settled forgets the question that is kept about a call, because it needs no answer any
	// more. asked says that there was a question in this run.
	Settled(ctx context.Context, t *registry.Tool, sent registry.Call, asked bool)
	// Stamp returns a value, never "", that is another one after kept questions were answered,
	// or approvals or settings have changed.
	Stamp(ctx context.Context) string
}

// lookEvery is how often a question that waits looks for what may settle it.
const lookEvery = time.Second

// elsewhere is the [Elsewhere] of a question about a call.
func (x *Executor) elsewhere(t *registry.Tool, call registry.Call, q Question) Elsewhere {
	if x.Unattended == nil {
		return nil
	}
	return func(ctx context.Context, kept func(string), first func() bool) (Answer, error) {
		tick := time.Tick(lookEvery)
		for before, looks := "", 0; ; looks++ {
			if looks == 1 { // most programs have answered by now, and need no file for that
				kept(x.Unattended.Keep(ctx, &q))
			}
			if now := x.Unattended.Stamp(ctx); now != before {
				before = now
				if a, ok := x.settlement(ctx, t, call, &q); ok {
					if !first() {
						return Answer{}, ErrAnswered
					}
					return a, nil
				}
			}
			select {
			case <-tick:
			case <-ctx.Done():
				if errors.Is(context.Cause(ctx), caller.ErrTaken) { // the call may be over by now
					x.Unattended.Settled(context.WithoutCancel(ctx), t, q.Call, true)
				}
				return Answer{}, context.Cause(ctx)
			}
		}
	}
}

// settlement returns the answer to a kept question or, if the verdict about the call is another
// one by now, what that makes the answer.
func (x *Executor) settlement(ctx context.Context, t *registry.Tool, call registry.Call, q *Question) (Answer, bool) {
	if a, id, ok := x.Unattended.Answered(ctx, q); ok && x.Unattended.Claim(ctx, id) {
		return a, true
	}
	switch now := x.Decide(ctx, t, call); {
	case now.Decision == policy.Deny:
		return Answer{Choice: No, Settled: &now}, true
	case now.Decision != policy.Ask && !q.Verdict.Firm:
		return Answer{Choice: Yes, Settled: &now}, true
	}
	return Answer{}, false
}

// Answers are the answers of an earlier run, and those of this one for a later run.
type Answers interface {
	// Find returns the earlier answer to a question, if there is one.
	Find(q *Question) (Answer, bool)
	// Keep keeps an answer.
	Keep(q *Question, a Answer)
}

// Held is a call that has not run yet, with the answers to the questions about it. Create it
// with [Executor.Hold].
type Held struct {
	// Open is the error of a question that nobody has answered yet; nil if there is none.
	Open *NeedsConfirmation
	// File is the file that the call is to change, as far as the question says; "" if
	// there was none.
	File string
	// Again is set by the caller if another call that was asked about before this one
	// changes the same file, so that what was shown of the file may change until this one runs.
	Again bool
	// Claims are the ids of the kept answers, which the call does not have before
	// [Unattended.Claim].
	Claims []string

	copy    int
	answers []heldAnswer // that were collected and not used yet

	hooked bool // the hooks were run, with this outcome
	params json.RawMessage
	asking registry.Asking
}

type heldAnswer struct {
	answer Answer
	basis  string // state of the files that were shown
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

// stateShown identifies the state of the files that a question shows.
func stateShown(q *Question) string { return q.Preview.Basis + q.Preview.OriginalContent }

// next returns the answer that was collected for the question. It returns false if there is
// none, or if the file has changed since.
func (h *Held) next(q *Question) (Answer, bool) {
	if len(h.answers) == 0 {
		return Answer{}, false
	}
	a := h.answers[0]
	h.answers = h.answers[1:]
	if a.basis != stateShown(q) && !h.Again {
		h.answers = nil
		return Answer{}, false
	}
	return a.answer, true
}

// addAnswer collects an answer. claim is the id of a kept one; "" if it needs no claim.
func (h *Held) addAnswer(q *Question, a Answer, claim string) {
	h.answers = append(h.answers, heldAnswer{a, stateShown(q)})
	if claim != "" {
		h.Claims = append(h.Claims, claim)
	}
}
