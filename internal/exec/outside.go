package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// offerOutside asks whether a call that failed because of the sandbox runs again
// outside. If not, it returns the result of the first run.
func (x *Executor) offerOutside(ctx context.Context, r *Record, first registry.Result) (registry.Result, error) {
	start := time.Now()
	err := x.confirmOutside(ctx, r, first)
	r.Asked += time.Since(start)
	if cause := context.Cause(ctx); cause != nil {
		return canceled(r.Tool, first, cause)
	}
	if err != nil {
		if denied, ok := errors.AsType[*Denied](err); ok && denied.Said != "" {
			first = first.WithNote("The user declined to run it outside the sandbox. The reason given: " + denied.Said)
		}
		return first, nil
	}
	r.Outside = true
	if r.Call.Emit != nil {
		r.Call.Emit(registry.TextContent("[again, outside the sandbox]\n"))
	}
	second, err := x.run(ctx, r.Tool, r.Call, policy.Confinement{})
	second.Duration += first.Duration
	if err != nil && !second.IsError {
		return second, err
	}
	note := fmt.Sprintf("This is the second run, outside the sandbox, which the user allowed. The first run, in the sandbox, failed (%s). The sandbox denied: %s",
		first.Summary, strings.Join(first.Denied, "; "))
	return second.WithShownNote(note), err
}

// confirmOutside returns nil only if the call may still run and a person wants it to
// run outside the sandbox.
func (x *Executor) confirmOutside(ctx context.Context, r *Record, first registry.Result) error {
	person := x.person()
	if person == nil {
		return registry.ErrNeedsConfirmation
	}
	v, err := x.admit(ctx, r.Tool, r.Call)
	if err != nil {
		return err
	}
	if !v.Confine.Outside {
		return registry.ErrDenied
	}
	q := &Question{Tool: r.Tool, Call: r.Call, Denied: first.Denied, Choices: []Choice{Yes, No}}
	q.Verdict = policy.Verdict{Commands: v.Commands,
		Reason: fmt.Sprintf("it failed in the sandbox (%s); outside, it can do all that you can", first.Summary)}
	if v.Confine.Changed != nil {
		if changed := v.Confine.Changed(); len(changed) > 0 {
			q.Verdict.Reason += fmt.Sprintf("; a sandboxed program may have changed %s since you saw it",
				strings.Join(changed, ", "))
		}
	}
	if q.Preview, err = x.preview(ctx, r.Tool, r.Call); err != nil {
		return err
	}
	defer person.Turn()()
	_, err = x.askPerson(ctx, person, q, nil)
	return err
}
