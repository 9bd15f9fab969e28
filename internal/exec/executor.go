package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/tracing"
)

// Executor runs calls. Set its fields before the first call. Execute is safe
// for concurrent use if the values of the fields are.
type Executor struct {
	// Validate checks params against the input schema, as registry.Validate
	// does. Required.
	Validate func(context.Context, *registry.Tool, json.RawMessage) error
	// Decider decides whether a call may run. Required.
	Decider Decider
	// Confirmer returns the Confirmer to use. It is called only if there is a
	// question. If it is nil or returns nil, nobody can be asked.
	Confirmer func() Confirmer
	// Unattended answers questions that no person could be asked. If nil, such calls fail.
	Unattended Unattended
	// Recorded has the answers of an earlier run and keeps those of this one. May be nil.
	Recorded Answers
	// Approvals stores "always" answers. If nil, that answer is not offered.
	Approvals Rememberer
	// Wrap wraps every tool; the first middleware is the outermost. The time limit is
	// inside all of them.
	Wrap []registry.Middleware
	// Timeout replaces the tool's own time limit. 0 keeps it; a negative value means
	// no limit.
	Timeout time.Duration
	// Grace is how long a tool may clean up after its context is done; 0 means 5 s. A
	// tool that takes longer is abandoned.
	Grace time.Duration
	// Limits returns the time limit of a tool from the settings, or 0 if there is
	// none. Timeout takes precedence. May be nil.
	Limits func(*registry.Tool) time.Duration
	// Confine returns a tool whose Run confines its program. It is called for each
	// call whose verdict requires the sandbox, and is inside all of Wrap. If nil,
	// such calls are refused.
	Confine func(registry.Tool, policy.Confinement) registry.Tool
	// Hooks may refuse a call, change its params and change its result. May be
	// nil.
	Hooks Hooks
	// Quota may refuse a call that is about to run, with a *LimitedError. May be nil.
	Quota func(context.Context, *registry.Tool) error
	// Observe receives every finished call, including refused ones, before the hooks
	// receive its result. May be nil.
	Observe func(context.Context, Record)
	// Warn reports problems that do not affect the call, such as an answer that
	// could not be stored. May be nil.
	Warn func(registry.Diagnostic)
}

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
// not asked for again. nil means it was not held.
func (x *Executor) ExecuteHeld(ctx context.Context, t *registry.Tool, call registry.Call, h *Held) (registry.Result, error) {
	ctx, span := tracing.Start(ctx, tracing.Call, "execute_tool")
	defer span.End()
	r := Record{Tool: t, Call: x.prepared(t, call), Start: time.Now()}
	r.Result, r.Err = x.execute(ctx, &r, h)
	return x.finish(ctx, r)
}

// prepared returns a call with params of its own, and without output that hooks have to
// screen first.
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

func (x *Executor) execute(ctx context.Context, r *Record, h *Held) (registry.Result, error) {
	var err error
	if r.Call, r.Verdict, err = x.vet(ctx, r.Tool, r.Call, h); err != nil {
		return unasked(err)
	}
	var edit *contentEdit
	asked := r.Verdict.Decision == policy.Ask
	if asked {
		began := time.Now()
		r.Call, edit, r.Verdict.Confine, err = x.confirm(ctx, r.Tool, r.Call, r.Verdict, h)
		r.Asked = time.Since(began)
		if err != nil {
			return unasked(err)
		}
	}
	if r.Verdict.Confine.On && x.Confine == nil {
		return registry.Result{}, &Denied{Tool: r.Tool.Name, Reason: "it must run in the sandbox, which is not available", Origin: r.Verdict.Confine.By}
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

// admitting returns what decides about the params that a running call leads to; see
// [registry.Call.Admit]. confirmed says that a person has confirmed the call.
func (x *Executor) admitting(t *registry.Tool, call registry.Call, confirmed bool) func(context.Context, json.RawMessage, bool) error {
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

// unasked returns the outcome of a call that was not confirmed. If its check or
// preview found that it can only fail, this is the result of that failure.
func unasked(err error) (registry.Result, error) {
	if failed, ok := errors.AsType[*registry.FailedError](err); ok {
		return failed.Result, nil
	}
	return registry.Result{}, err
}

// Check validates the params of a call as Execute does before the decision: against
// the schema, then with the tool's own check. It needs only the field Validate.
func (x *Executor) Check(ctx context.Context, t *registry.Tool, call registry.Call) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("calling %q: %w", t.Name, err)
	}
	if err := x.Validate(ctx, t, call.Params); err != nil {
		return err
	}
	if t.Check == nil {
		return nil
	}
	return catchPanic(t, "checking params", func() error { return t.Check(ctx, call) })
}

// admit checks params and decides. An error means that the call must not run.
func (x *Executor) admit(ctx context.Context, t *registry.Tool, call registry.Call) (policy.Verdict, error) {
	if err := x.Check(ctx, t, call); err != nil {
		return policy.Verdict{}, err
	}
	v := x.Decider.Decide(ctx, t, call)
	if v.Decision == policy.Deny {
		return v, &Denied{Tool: t.Name, Reason: v.Reason, Origin: v.Origin, Later: v.Later}
	}
	return v, nil
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

// confirm asks until the answer is yes or no. It returns the accepted call, the
// person's edit, which may be nil, and how the call runs.
func (x *Executor) confirm(ctx context.Context, t *registry.Tool, call registry.Call, v policy.Verdict, h *Held) (registry.Call, *contentEdit, policy.Confinement, error) {
	person := x.person()
	if person == nil {
		return call, nil, v.Confine, &NeedsConfirmation{Tool: t.Name, Verdict: v, Hint: Hint(t, v)}
	}
	defer paused(ctx)()
	defer person.Turn()()
	if confine, ok := x.settled(ctx, t, call, v); ok {
		return call, nil, confine, nil
	}
	var edit *contentEdit
	var sure *registry.Preview // the change as it was accepted with new content
	for {
		sent, err := asSent(t, call)
		if err != nil {
			return call, nil, v.Confine, err
		}
		q := Question{Tool: t, Call: sent, Verdict: v}
		if q.Preview, err = x.preview(ctx, t, call); err != nil {
			return call, nil, v.Confine, err
		}
		if q.Preview.Unchanged && !h.hasAnswers() {
			return call, edit.agreed(q.Preview), v.Confine, nil
		}
		q.Choices = choices(t, q.Preview, v, x.Approvals != nil)
		if h != nil {
			h.File, q.Copy = q.Preview.FileName, h.copy
		}
		q.Elsewhere = x.elsewhere(t, call, q)
		answer := Answer{Choice: Yes}
		if sure == nil || !sameChange(sure, &q.Preview) {
			if answer, err = x.askPerson(ctx, person, q, h); err != nil {
				return call, nil, v.Confine, err
			}
		}
		if answer.Choice == Edit && answer.Sure {
			if answer.Content == q.Preview.NewContent || sure != nil && sure.FileName == q.Preview.FileName && sure.NewContent == answer.Content {
				answer = Answer{Choice: Yes}
			} else {
				sure = &registry.Preview{FileName: q.Preview.FileName, OriginalContent: q.Preview.OriginalContent, NewContent: answer.Content}
			}
		}
		if answer.Settled != nil {
			return call, edit.agreed(q.Preview), answer.Settled.Confine, nil
		}
		if answer.Choice != Edit {
			if now := x.Decider.Decide(ctx, t, call); now.Decision == policy.Deny { // the rules have changed while the question was open
				return call, nil, v.Confine, &Denied{Tool: t.Name, Reason: now.Reason, Origin: now.Origin, Later: now.Later}
			}
			x.remember(ctx, t, answer.Choice, v)
			x.accept(ctx, t, v)
			if scope, ok := scopeOf(answer.Choice, v); ok && scope.Confined {
				v.Confine = v.InSandbox
			}
			return call, edit.agreed(q.Preview), v.Confine, nil
		}
		if edit == nil {
			edit = &contentEdit{proposed: q.Preview.NewContent}
		}
		if call, v, err = x.revise(ctx, t, call, answer.Content); err != nil {
			return call, nil, v.Confine, err
		}
	}
}

// sameChange reports whether a change is the accepted one. The tool may end the last line
// and each line as the file does.
func sameChange(accepted, p *registry.Preview) bool {
	lines := func(s string) string { return strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n") }
	return accepted.FileName == p.FileName && accepted.OriginalContent == p.OriginalContent && lines(accepted.NewContent) == lines(p.NewContent)
}

// settled reports whether a call no longer needs confirmation, because another
// question was answered with "always" in the meantime, and how it runs then.
func (x *Executor) settled(ctx context.Context, t *registry.Tool, call registry.Call, v policy.Verdict) (policy.Confinement, bool) {
	if len(v.Scopes) == 0 {
		return v.Confine, false
	}
	now := x.Decider.Decide(ctx, t, call)
	return now.Confine, now.Decision == policy.Allow || now.Decision == policy.Sandbox
}

// askPerson asks one question. Anything except a clear yes is an error.
func (x *Executor) askPerson(ctx context.Context, person Confirmer, q Question, h *Held) (Answer, error) {
	a, err := x.ask(ctx, person, &q, h)
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
		return a, &Denied{Tool: q.Tool.Name, Reason: v.Reason, Origin: v.Origin, Later: v.Later}
	}
	for _, c := range q.Choices {
		if c == a.Choice && c != No {
			return a, nil
		}
	}
	return a, &Denied{Tool: q.Tool.Name, Reason: a.Reason, Origin: OriginPerson, Said: a.Said}
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

// revise returns the call that results in the person's edit. The new call passes
// every check again, and needs confirmation again regardless of the decision.
func (x *Executor) revise(ctx context.Context, t *registry.Tool, call registry.Call, content string) (registry.Call, policy.Verdict, error) {
	var next registry.Call
	err := catchPanic(t, "revising the call", func() (err error) { next, err = t.Revise(ctx, call, content); return err })
	if err != nil {
		return call, policy.Verdict{}, err
	}
	next.Tool, next.Place, next.Emit, next.Progress = call.Tool, call.Place, call.Emit, call.Progress
	next.Params = bytes.Clone(next.Params)
	return x.vet(ctx, t, next, nil)
}

// remember stores an "always" answer. If that fails, it warns and the call
// continues.
func (x *Executor) remember(ctx context.Context, t *registry.Tool, c Choice, v policy.Verdict) {
	scope, ok := scopeOf(c, v)
	if !ok || x.Approvals == nil {
		return
	}
	if err := x.Approvals.Remember(ctx, t, scope); err != nil {
		x.warnUnsaved(t, err)
	}
}

// accept records what a yes accepts for later calls, unless a client of serve
// with a token of its own says it, who does not answer for others. If that fails, it warns and the call continues.
func (x *Executor) accept(ctx context.Context, t *registry.Tool, v policy.Verdict) {
	if v.Accept == nil || caller.Token(ctx) != "" {
		return
	}
	if err := v.Accept(ctx); err != nil {
		x.warnUnsaved(t, err)
	}
}

func (x *Executor) warnUnsaved(t *registry.Tool, err error) {
	if x.Warn != nil {
		x.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "approval_not_saved", Source: t.Source, Tool: t.Name,
			Message: "the answer cannot be remembered, so the next call asks again: " + err.Error()})
	}
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
