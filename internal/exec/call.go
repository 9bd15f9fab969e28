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

// This file follows a call through its steps, in the order in which they are taken.

// execute makes a call and returns what has become of it. A step that refuses the call ends it.
// Only this function writes the record: each step returns what it has found.
func (x *Executor) execute(ctx context.Context, t *registry.Tool, call registry.Call, h *Held) Record {
	r := Record{Tool: t, Start: time.Now()}
	var err error

	// The params are checked, the call is decided about, and the hooks see it.
	if r.Call, r.Verdict, err = x.vet(ctx, t, call, h); err != nil {
		return r.refused(err)
	}

	// Somebody is asked, if the verdict says so.
	agreed, asks := agreement{}, r.Verdict.Decision == policy.Ask
	if asks {
		began := time.Now()
		agreed, err = x.dialog(h, false).confirm(ctx, t, r.Call, r.Verdict)
		r.Asked, r.Call, r.Verdict.Confine = time.Since(began), agreed.call, agreed.confine
		if err != nil {
			return r.refused(err)
		}
	}

	// It must be possible to run it as was decided, and now.
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

	// It runs, and once more outside the sandbox if that has made it fail and a person wants it.
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

// vet checks and decides about a call, and passes it to the hooks, unless h has what they said.
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

// admit checks params and decides. It returns the call with what the verdict says about how the tool
// is to read them. An error means that the call must not run.
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

// agreement is what was agreed to about a call whose verdict asks.
type agreement struct {
	call    registry.Call      // with the person's edit
	confine policy.Confinement // how it runs
	edit    *contentEdit       // for the note to the model; nil means that nobody has edited anything
}

// dialog is the questions about one call, and who answers them.
type dialog struct {
	*Executor
	person Confirmer // nil means that nobody answers
	held   *Held
	// collects says that answers are collected in held, for when the call is made. Otherwise
	// the call is being made, and those that were collected come first.
	collects bool
}

func (x *Executor) dialog(h *Held, collects bool) dialog {
	d := dialog{Executor: x, held: h, collects: collects}
	if x.Confirmer != nil {
		d.person = x.Confirmer()
	}
	if d.person == nil && (x.Unattended != nil || x.Recorded != nil) {
		d.person = nobody{}
	}
	return d
}

// confirm asks until the answer is yes or no. With an error the agreement is what it has come to by
// then, which the log of the call has.
func (d dialog) confirm(ctx context.Context, t *registry.Tool,
	call registry.Call, v policy.Verdict) (agreement, error) {
	agreed := agreement{call: call, confine: v.Confine}
	if d.person == nil {
		return agreed, &NeedsConfirmation{Tool: t.Name, Verdict: v, Hint: Hint(t, v)}
	}
	defer pauseTimer(ctx)()
	defer d.person.Turn()()
	if len(v.Scopes) > 0 { // another question may have been answered with "always" in the meantime
		if now := d.Decide(ctx, t, call); now.Decision == policy.Allow || now.Decision == policy.Sandbox {
			agreed.confine = now.Confine
			return agreed, nil
		}
	}
	var edit *contentEdit
	for {
		q, err := d.question(ctx, t, agreed.call, v)
		if err != nil {
			return agreed, err
		}
		if q.Preview.Unchanged && (d.collects || len(d.held.answers) == 0) {
			agreed.confine, agreed.edit = v.Confine, edit.agreed(q.Preview)
			return agreed, nil
		}
		answer := Answer{Choice: Yes}
		if !edit.accepts(&q.Preview) {
			if answer, err = d.ask(ctx, q); err != nil {
				return agreed, err
			}
		}
		if answer.Choice == Edit && !(answer.Sure && edit.repeats(&q.Preview, answer.Content)) {
			edit = edit.next(&q.Preview, answer)
			if agreed.call, v, err = d.revise(ctx, t, agreed.call, answer.Content); err != nil {
				return agreed, err
			}
			continue
		}
		agreed.confine, err = d.accept(ctx, q, agreed.call, answer)
		agreed.edit = edit.agreed(q.Preview)
		return agreed, err
	}
}

// question returns the question about a call.
func (d dialog) question(ctx context.Context, t *registry.Tool,
	call registry.Call, v policy.Verdict) (*Question, error) {
	q := &Question{Tool: t, Verdict: v, Copy: d.held.copy}
	var err error
	if q.Call, err = asSent(t, call); err != nil {
		return nil, err
	}
	if q.Preview, err = d.preview(ctx, t, call); err != nil {
		return nil, err
	}
	q.Choices = q.choices(d.Remember != nil)
	q.Elsewhere = d.elsewhere(t, call, *q)
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

// nobody is the Confirmer if there is no person.
type nobody struct{}

// Turn implements [Confirmer].
func (nobody) Turn() func() { return func() {} }

// Confirm implements [Confirmer].
func (nobody) Confirm(_ context.Context, q Question) (Answer, error) {
	return Answer{}, &NeedsConfirmation{Tool: q.Tool.Name, Verdict: q.Verdict, Hint: Hint(q.Tool, q.Verdict)}
}

// ask asks one question. Anything except a clear yes is an error.
func (d dialog) ask(ctx context.Context, q *Question) (Answer, error) {
	answer, err := d.answer(ctx, q)
	if cause := context.Cause(ctx); cause != nil {
		return answer, fmt.Errorf("calling %q: %w", q.Tool.Name, cause)
	}
	if open, ok := errors.AsType[*NeedsConfirmation](err); ok {
		return answer, open
	}
	if err != nil {
		return answer, fmt.Errorf("asking about %q: %w: %w", q.Tool.Name, registry.ErrNeedsConfirmation, err)
	}
	if v := answer.Settled; v != nil && answer.Choice == No {
		return answer, denied(q.Tool, *v)
	}
	if answer.Choice != No && slices.Contains(q.Choices, answer.Choice) {
		return answer, nil
	}
	return answer, &Denied{Tool: q.Tool.Name, Reason: answer.Reason, Origin: OriginPerson, Said: answer.Said}
}

// answer gets the answer to a question: the one that was collected before, or that of an
// earlier run, or that of this one.
func (d dialog) answer(ctx context.Context, q *Question) (answer Answer, err error) {
	d.held.File = q.Preview.FileName
	if !d.collects {
		if answer, ok := d.held.next(q); ok {
			return answer, nil
		}
	}
	found, claim := false, ""
	if d.Recorded != nil {
		answer, found = d.Recorded.Find(q)
	}
	if !found {
		if answer, claim, err = d.answerNow(ctx, q); err == nil && d.Recorded != nil {
			d.Recorded.Keep(q, answer)
		}
	}
	if err == nil && d.collects {
		d.held.addAnswer(q, answer, claim)
	}
	return answer, err
}

// answerNow gets the answer of this run to a question: that of a kept question, or the person's, or
// that of the Unattended. claim is the id of a kept answer.
func (d dialog) answerNow(ctx context.Context, q *Question) (answer Answer, claim string, err error) {
	if d.Unattended != nil {
		if answer, id, ok := d.Unattended.Answered(ctx, q); ok && (d.collects || d.Unattended.Claim(ctx, id)) {
			return answer, id, nil
		}
	}
	answer, err = d.person.Confirm(ctx, *q)
	if absent, ok := errors.AsType[*NeedsConfirmation](err); ok && d.Unattended != nil && ctx.Err() == nil {
		if answer, absent.Kept, ok = d.Unattended.Absent(ctx, q); !ok {
			return answer, "", absent
		}
		err = nil
	}
	if err == nil && d.Unattended != nil {
		d.Unattended.Settled(ctx, q.Tool, q.Call, true)
	}
	return answer, "", err
}

// accept returns how a call runs whose question was answered with yes, and stores what the answer
// says about later calls. If that fails, it warns and the call continues.
func (x *Executor) accept(ctx context.Context, q *Question, call registry.Call, a Answer) (policy.Confinement, error) {
	if a.Settled != nil {
		return a.Settled.Confine, nil
	}
	if now := x.Decide(ctx, q.Tool, call); now.Decision == policy.Deny {
		// The rules have changed while the question was open.
		return q.Verdict.Confine, denied(q.Tool, now)
	}
	scope, always := q.Scope(a.Choice)
	if always && x.Remember != nil {
		x.warnUnsaved(q.Tool, x.Remember(ctx, q.Tool, scope))
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
	return x.vet(ctx, t, next, &Held{})
}

// admitting returns what decides about the params that a running call leads to; see
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

// runAdmitted makes a call that was admitted. The wrappers are outermost, then the sandbox,
// the time limit and the tool.
func (x *Executor) runAdmitted(ctx context.Context, t *registry.Tool,
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

// pauseTimer calls the function of [WithPause].
func pauseTimer(ctx context.Context) (resume func()) {
	if pause, ok := ctx.Value(pauseKey{}).(func() func()); ok {
		return pause()
	}
	return func() {}
}
