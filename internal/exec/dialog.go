package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// agreement is the outcome of the questions about a call.
type agreement struct {
	call    registry.Call      // with the person's edit
	confine policy.Confinement // how it runs
	edit    *contentEdit       // for the note to the model; nil means that nobody has edited anything
}

// dialog asks the questions about one call.
type dialog struct {
	*Executor
	person Confirmer // nil means that nobody answers
	held   *Held
	// collects says that answers are collected in held, for a later run of the call. Otherwise the
	// call is being made, and answers that were collected are used first.
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

// confirm asks until the answer is yes or no. With an error it returns the agreement so far, for
// the log of the call.
func (d dialog) confirm(ctx context.Context, t *registry.Tool,
	call registry.Call, v policy.Verdict) (agreement, error) {
	agreed := agreement{call: call, confine: v.Confine}
	if d.person == nil {
		return agreed, &NeedsConfirmation{Tool: t.Name, Verdict: v, Hint: Hint(t, v)}
	}
	defer pauseTimer(ctx)()
	defer d.person.Turn()()
	if len(v.Scopes) > 0 { // another question may have been answered with "always" meanwhile
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

func (nobody) Turn() func() { return func() {} }

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

// answer returns the answer to a question: the one that was collected before, or that of an earlier
// run, or a new one.
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

// answerNow gets a new answer to a question: that to a kept question, or the person's, or that of
// the Unattended. claim is the id of a kept answer.
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
// allows from now on. If that fails, it warns and the call continues.
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

// lookEvery is how often a waiting question looks for an event that settles it.
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

// settlement returns the answer to a kept question or, if the verdict about the call has changed,
// the answer that follows from that.
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
