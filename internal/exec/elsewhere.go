package exec

import (
	"context"
	"errors"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

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
