// Package exec runs calls: it validates the params, decides, asks for confirmation
// and runs the tool.
//
// [Executor.Execute] is the only way to run a tool, whether in a single call, a
// batch or a server, and the only place that asks a person for confirmation. It
// asks through [Confirmer], so that this package does not depend on a terminal.
package exec

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// Executor runs calls. Its fields are in the order in which a call needs them; set them before the
// first call. Execute is safe for concurrent use if the values of the fields are.
type Executor struct {
	// Validate checks params against the input schema, as registry.Validate
	// does. Required.
	Validate func(context.Context, *registry.Tool, json.RawMessage) error
	// Decide decides whether a call may run, as [policy.Policy.Decide] does. Required.
	Decide func(context.Context, *registry.Tool, registry.Call) policy.Verdict
	// Hooks may refuse a call, change its params and change its result. May be nil.
	Hooks Hooks
	// Confirmer returns the Confirmer to use. It is called only if there is a
	// question. If it is nil or returns nil, nobody can be asked.
	Confirmer func() Confirmer
	// Unattended answers questions that no person could be asked. If nil, such calls fail.
	Unattended Unattended
	// Recorded has the answers of an earlier run and keeps those of this one. May be nil.
	Recorded Answers
	// Remember stores an "always" answer. If nil, that answer is not offered.
	Remember func(context.Context, *registry.Tool, policy.Scope) error
	// Quota may refuse a call that is about to run, with a *LimitedError. May be nil.
	Quota func(context.Context, *registry.Tool) error
	// Wrap wraps every tool; the first middleware is the outermost. The time limit is
	// inside all of them.
	Wrap []registry.Middleware
	// Confine returns a tool whose Run confines its program. It is called for each
	// call whose verdict requires the sandbox, and is inside all of Wrap. If nil,
	// such calls are refused.
	Confine func(registry.Tool, policy.Confinement) registry.Tool
	// TimeLimit returns a replacement for a tool's own time limit. Zero keeps it; a negative value
	// means no limit. If nil, tools keep their own limits.
	TimeLimit func(*registry.Tool) time.Duration
	// Observe receives every finished call, including refused ones, before the hooks receive its
	// result. May be nil.
	Observe func(context.Context, Record)
	// Warn receives problems that do not affect the call, such as an answer that could not be
	// stored. May be nil.
	Warn func(registry.Diagnostic)
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

// Unattended answers questions that no person could be asked, and keeps those that nobody
// answers.
type Unattended interface {
	// Answered returns the answer to a kept question that is the same as q, and its id.
	Answered(ctx context.Context, q *Question) (a Answer, id string, ok bool)
	// Claim takes the answers with these ids, so that no other call gets them. It takes either all
	// of them, or none if one is gone.
	Claim(ctx context.Context, ids ...string) bool
	// Absent answers a question that no person could be asked. If it cannot, it keeps
	// the question and returns it, or nil if that is not possible either.
	Absent(ctx context.Context, q *Question) (a Answer, kept *policy.KeptQuestion, ok bool)
	// Keep keeps a question while a person is asked, and returns its id; "" if that is not
	// possible.
	Keep(ctx context.Context, q *Question) (id string)
	// Settled forgets the question that is kept about a call and no longer needs an answer. asked
	// says that there was a question in this run.
	Settled(ctx context.Context, t *registry.Tool, sent registry.Call, asked bool)
	// Stamp returns a value, never "", that changes whenever kept questions are answered, or
	// approvals or settings change.
	Stamp(ctx context.Context) string
}

// Answers are the answers of an earlier run, and those of this one for a later run.
type Answers interface {
	// Find returns the earlier answer to a question, if there is one.
	Find(q *Question) (Answer, bool)
	// Keep keeps an answer.
	Keep(q *Question, a Answer)
}

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

// refused returns the record of a call that is not made. If its check or preview has found that it
// can only fail, its result is that failure.
func (r Record) refused(err error) Record {
	if failed, ok := errors.AsType[*registry.FailedError](err); ok {
		r.Result = failed.Result
	} else {
		r.Err = err
	}
	return r
}

type observerKey struct{}

// Observing returns a context in which observe also receives every finished call, as
// [Executor.Observe] does: first the steps of a composite, then the composite.
func Observing(ctx context.Context, observe func(Record)) context.Context {
	return context.WithValue(ctx, observerKey{}, observe)
}

// Held is a call that has not run yet, with the answers to the questions about it. Create it
// with [Executor.Hold].
type Held struct {
	// Open is the error of a question that nobody has answered yet; nil if there is none.
	Open *NeedsConfirmation
	// File is the file that the call would change according to the question; "" if there is none.
	File string
	// Again is set by the caller if a call that was asked about earlier changes the same file, so
	// that the file may differ from what was shown by the time this call runs.
	Again bool
	// Claims are the ids of the kept answers, which must be taken with [Unattended.Claim] before
	// they are used.
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

// stateShown identifies the state of the files that a question shows.
func stateShown(q *Question) string { return q.Preview.Basis + q.Preview.OriginalContent }

// next returns the answer that was collected for the question. It returns false if there is none,
// or if the file has changed since.
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
