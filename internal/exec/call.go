package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// This file follows a call: it is validated and decided about, confirmed, and run.

func (x *Executor) execute(ctx context.Context, r *Record, h *Held) (registry.Result, error) {
	var err error
	if r.Call, r.Verdict, err = x.vet(ctx, r.Tool, r.Call, h); err != nil {
		return unasked(err)
	}
	var edit *contentEdit
	asked := r.Verdict.Decision == policy.Ask
	if asked {
		began := time.Now()
		edit, err = x.confirm(ctx, r, h)
		r.Asked = time.Since(began)
		if err != nil {
			return unasked(err)
		}
	}
	if r.Verdict.Confine.On && x.Confine == nil {
		return registry.Result{}, &Denied{Tool: r.Tool.Name,
			Reason: "it must run in the sandbox, which is not available", Origin: r.Verdict.Confine.By}
	}
	if x.Quota != nil {
		if err := x.Quota(ctx, r.Tool); err != nil {
			return registry.Result{}, err
		}
	}
	if sent, err := asSent(r.Tool, r.Call); err == nil && !asked && x.Unattended != nil {
		x.Unattended.Settled(ctx, r.Tool, sent, false)
	}
	r.Ran = true
	r.Call.Admit = x.admitting(r.Tool, r.Call, asked)
	result, err := x.run(ctx, r.Tool, r.Call, r.Verdict.Confine)
	if err == nil && result.IsError && len(result.Denied) > 0 && r.Verdict.Confine.Outside {
		result, err = x.offerOutside(ctx, r, result)
	}
	return edit.addTo(result), err
}

// vet checks and decides about a call, and passes it to the hooks, unless h has what they said.
// Params that hooks change pass every check again, including the decision.
func (x *Executor) vet(ctx context.Context, t *registry.Tool,
	call registry.Call, h *Held) (registry.Call, policy.Verdict, error) {
	v, err := x.admit(ctx, t, call)
	call.Hides, call.HidesKey, call.Paths = v.Hides, v.HidesKey, v.Paths
	if err != nil || x.Hooks == nil {
		return call, v, err
	}
	params, asking, err := x.before(ctx, t, call, h)
	if err == nil && params != nil && !bytes.Equal(params, call.Params) {
		call.Params = bytes.Clone(params)
		if v, err = x.admit(ctx, t, call); err != nil {
			err = fmt.Errorf("with the params from a beforeCall hook: %w", err)
		}
	}
	call.Hides, call.HidesKey, call.Paths = v.Hides, v.HidesKey, v.Paths
	return call, tightened(v, asking), err
}

// admit checks params and decides. An error means that the call must not run.
func (x *Executor) admit(ctx context.Context, t *registry.Tool, call registry.Call) (policy.Verdict, error) {
	if err := x.Check(ctx, t, call); err != nil {
		return policy.Verdict{}, err
	}
	v := x.Decider.Decide(ctx, t, call)
	if v.Decision == policy.Deny {
		return v, denied(t, v)
	}
	return v, nil
}

// denied returns the error of a call that a verdict denies.
func denied(t *registry.Tool, v policy.Verdict) *Denied {
	return &Denied{Tool: t.Name, Reason: v.Reason, Origin: v.Origin, Later: v.Later}
}

// before passes a call to the hooks. Those of a call that was held run once.
func (x *Executor) before(ctx context.Context, t *registry.Tool,
	call registry.Call, h *Held) (json.RawMessage, registry.Asking, error) {
	if h != nil && h.hooked {
		return h.params, h.asking, nil
	}
	params, asking, err := x.Hooks.Before(ctx, t, call)
	if h != nil && err == nil {
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

// confirm asks until the answer is yes or no. It sets the call that was accepted and how it runs,
// and returns the person's edit, which may be nil.
func (x *Executor) confirm(ctx context.Context, r *Record, h *Held) (*contentEdit, error) {
	person := x.person()
	if person == nil {
		return nil, &NeedsConfirmation{Tool: r.Tool.Name, Verdict: r.Verdict, Hint: Hint(r.Tool, r.Verdict)}
	}
	defer paused(ctx)()
	defer person.Turn()()
	if len(r.Verdict.Scopes) > 0 { // another question may have been answered with "always" in the meantime
		if now := x.Decider.Decide(ctx, r.Tool, r.Call); now.Decision == policy.Allow ||
			now.Decision == policy.Sandbox {
			r.Verdict.Confine = now.Confine
			return nil, nil
		}
	}
	var edit *contentEdit
	for v := r.Verdict; ; {
		q, err := x.question(ctx, r.Tool, r.Call, v, h)
		if err != nil {
			return nil, err
		}
		if q.Preview.Unchanged && !h.hasAnswers() {
			r.Verdict.Confine = v.Confine
			return edit.agreed(q.Preview), nil
		}
		answer := Answer{Choice: Yes}
		if !edit.accepts(&q.Preview) {
			if answer, err = x.askPerson(ctx, person, q, h); err != nil {
				return nil, err
			}
		}
		if answer.Choice == Edit && !(answer.Sure && edit.repeats(&q.Preview, answer.Content)) {
			edit = edit.next(&q.Preview, answer)
			if r.Call, v, err = x.revise(ctx, r.Tool, r.Call, answer.Content); err != nil {
				return nil, err
			}
			continue
		}
		r.Verdict.Confine, err = x.accept(ctx, q, r.Call, answer)
		return edit.agreed(q.Preview), err
	}
}

// question returns the question about a call.
func (x *Executor) question(ctx context.Context, t *registry.Tool,
	call registry.Call, v policy.Verdict, h *Held) (*Question, error) {
	q := &Question{Tool: t, Verdict: v}
	var err error
	if q.Call, err = asSent(t, call); err != nil {
		return nil, err
	}
	if q.Preview, err = x.preview(ctx, t, call); err != nil {
		return nil, err
	}
	q.Choices = q.choices(x.Approvals != nil)
	if h != nil {
		q.Copy = h.copy
	}
	q.Elsewhere = x.elsewhere(t, call, *q)
	return q, nil
}

// asSent returns a call with the params that the tool's source receives. A person
// confirms these, not the ones that the model sent.
func asSent(t *registry.Tool, call registry.Call) (registry.Call, error) {
	if t.Wire == nil {
		return call, nil
	}
	return t.Wire(call)
}

func (x *Executor) preview(ctx context.Context, t *registry.Tool, call registry.Call) (registry.Preview, error) {
	if t.Preview == nil {
		kind := registry.PreviewInfo
		if t.OfServer() {
			kind = registry.PreviewMCP
		}
		return registry.Preview{Kind: kind}, nil
	}
	var p registry.Preview
	err := catchPanic(t, "previewing the call", func() (err error) { p, err = t.Preview(ctx, call); return err })
	return p, err
}

// person returns what asks, or nil if nobody answers.
func (x *Executor) person() Confirmer {
	if x.Confirmer != nil {
		if person := x.Confirmer(); person != nil {
			return person
		}
	}
	if x.Unattended != nil || x.Recorded != nil {
		return nobody{}
	}
	return nil
}

// nobody is the Confirmer if there is no person.
type nobody struct{}

// Turn implements [Confirmer].
func (nobody) Turn() func() { return func() {} }

// Confirm implements [Confirmer].
func (nobody) Confirm(_ context.Context, q Question) (Answer, error) {
	return Answer{}, &NeedsConfirmation{Tool: q.Tool.Name, Verdict: q.Verdict, Hint: Hint(q.Tool, q.Verdict)}
}

// askPerson asks one question. Anything except a clear yes is an error.
func (x *Executor) askPerson(ctx context.Context, person Confirmer, q *Question, h *Held) (Answer, error) {
	a, err := x.ask(ctx, person, q, h)
	if cause := context.Cause(ctx); cause != nil {
		return a, fmt.Errorf("calling %q: %w", q.Tool.Name, cause)
	}
	if open, ok := errors.AsType[*NeedsConfirmation](err); ok {
		return a, open
	}
	if err != nil {
		return a, fmt.Errorf("asking about %q: %w: %w", q.Tool.Name, registry.ErrNeedsConfirmation, err)
	}
	if v := a.Settled; v != nil && a.Choice == No {
		return a, denied(q.Tool, *v)
	}
	if a.Choice != No && slices.Contains(q.Choices, a.Choice) {
		return a, nil
	}
	return a, &Denied{Tool: q.Tool.Name, Reason: a.Reason, Origin: OriginPerson, Said: a.Said}
}

// ask gets the answer to a question: the one that was collected before, or that of an
// earlier run, or that of a kept question, or the person's, or that of the Unattended.
func (x *Executor) ask(ctx context.Context, person Confirmer, q *Question, h *Held) (Answer, error) {
	if h != nil {
		h.File = q.Preview.FileName
	}
	if a, ok := h.next(q); ok {
		return a, nil
	}
	if x.Recorded != nil {
		if a, ok := x.Recorded.Find(q); ok {
			h.add(q, a, "")
			return a, nil
		}
	}
	a, err := x.askAnyone(ctx, person, q, h)
	if err == nil && x.Recorded != nil {
		x.Recorded.Keep(q, a)
	}
	return a, err
}

// askAnyone gets the answer of this run to a question.
func (x *Executor) askAnyone(ctx context.Context, person Confirmer, q *Question, h *Held) (Answer, error) {
	if x.Unattended != nil {
		if a, id, ok := x.Unattended.Answered(ctx, q); ok && (h != nil && h.holding || x.Unattended.Claim(ctx, id)) {
			h.add(q, a, id)
			return a, nil
		}
	}
	a, err := person.Confirm(ctx, *q)
	if absent, ok := errors.AsType[*NeedsConfirmation](err); ok && x.Unattended != nil && ctx.Err() == nil {
		if a, absent.Kept, ok = x.Unattended.Absent(ctx, q); !ok {
			return a, absent
		}
		err = nil
	}
	if err == nil {
		h.add(q, a, "")
		if x.Unattended != nil {
			x.Unattended.Settled(ctx, q.Tool, q.Call, true)
		}
	}
	return a, err
}

// accept returns how a call runs whose question was answered with yes, and stores what the answer
// says about later calls. If that fails, it warns and the call continues.
func (x *Executor) accept(ctx context.Context, q *Question, call registry.Call, a Answer) (policy.Confinement, error) {
	if a.Settled != nil {
		return a.Settled.Confine, nil
	}
	if now := x.Decider.Decide(ctx, q.Tool, call); now.Decision == policy.Deny {
		// The rules have changed while the question was open.
		return q.Verdict.Confine, denied(q.Tool, now)
	}
	scope, always := q.Scope(a.Choice)
	if always && x.Approvals != nil {
		x.warnUnsaved(q.Tool, x.Approvals.Remember(ctx, q.Tool, scope))
	}
	if q.Verdict.Accept != nil && caller.Token(ctx) == "" {
		// A client with a token of its own does not answer for others.
		x.warnUnsaved(q.Tool, q.Verdict.Accept(ctx))
	}
	if always && scope.Confined {
		return q.Verdict.InSandbox, nil
	}
	return q.Verdict.Confine, nil
}

func (x *Executor) warnUnsaved(t *registry.Tool, err error) {
	if err != nil && x.Warn != nil {
		x.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "approval_not_saved", Source: t.Source,
			Tool: t.Name, Message: "the answer cannot be remembered, so the next call asks again: " + err.Error()})
	}
}

// revise returns the call that results in the person's edit. The new call passes
// every check again, and needs confirmation again regardless of the decision.
func (x *Executor) revise(ctx context.Context, t *registry.Tool,
	call registry.Call, content string) (registry.Call, policy.Verdict, error) {
	var next registry.Call
	err := catchPanic(t, "revising the call",
		func() (err error) { next, err = t.Revise(ctx, call, content); return err })
	if err != nil {
		return call, policy.Verdict{}, err
	}
	next.Tool, next.Place, next.Emit, next.Progress = call.Tool, call.Place, call.Emit, call.Progress
	next.Params = bytes.Clone(next.Params)
	return x.vet(ctx, t, next, nil)
}

// unasked returns the outcome of a call that was not confirmed. If its check or
// preview found that it can only fail, this is the result of that failure.
func unasked(err error) (registry.Result, error) {
	if failed, ok := errors.AsType[*registry.FailedError](err); ok {
		return failed.Result, nil
	}
	return registry.Result{}, err
}

// admitting returns what decides about the params that a running call leads to; see
// [registry.Call.Admit]. confirmed says that a person has confirmed the call.
func (x *Executor) admitting(t *registry.Tool, call registry.Call,
	confirmed bool) func(context.Context, json.RawMessage, bool) error {
	return func(ctx context.Context, params json.RawMessage, agreed bool) error {
		next := call
		next.Params = params
		vetted, v, err := x.vet(ctx, t, next, nil)
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

// run makes a call that was admitted. The wrappers are outermost, then the sandbox,
// the time limit and the tool.
func (x *Executor) run(ctx context.Context, t *registry.Tool,
	call registry.Call, confine policy.Confinement) (registry.Result, error) {
	out := &emitter{emit: call.Emit, progress: call.Progress}
	defer out.close()
	call.Emit, call.Progress = out.Emit, out.Progress

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

type pauseKey struct{}

// WithPause returns a context in which pause is called while a question waits for its
// answer, and what it returns afterwards.
func WithPause(ctx context.Context, pause func() (resume func())) context.Context {
	return context.WithValue(ctx, pauseKey{}, pause)
}

// paused calls the function of [WithPause].
func paused(ctx context.Context) (resume func()) {
	if pause, ok := ctx.Value(pauseKey{}).(func() func()); ok {
		return pause()
	}
	return func() {}
}
