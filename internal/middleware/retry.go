package middleware

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
)

// Defaults and limits of [Retry].
const (
	DefaultDelay = 500 * time.Millisecond
	maxDelay     = time.Minute
	maxRetries   = 20
)

// Retry repeats failed calls of tools for which that is safe (see
// [Repeatable]); other tools are left alone.
type Retry struct {
	Retries int           // repetitions at most; more than 20 count as 20
	Delay   time.Duration // before the first; doubled with each, at most a minute; 0 = DefaultDelay
}

// Wrap is a [registry.Middleware]. A call is not repeated when its context has
// ended, when it ran into a time limit, or when the params are at fault.
func (r Retry) Wrap(t registry.Tool) registry.Tool {
	if r.Retries <= 0 || !Repeatable(&t) {
		return t
	}
	run := t.Run
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		call.Keep, call.Spill = 0, nil // the file would hold every attempt
		delay := cmp.Or(r.Delay, DefaultDelay)
		for attempt := 1; ; attempt++ {
			result, err := run(ctx, call)
			if attempt > 1 {
				result.Attempts = attempt
			}
			if attempt > min(r.Retries, maxRetries) || !transient(ctx, result, err) || !wait(ctx, min(delay, maxDelay)) {
				return result, err
			}
			call.Progress(registry.Progress{Message: "failed, trying again"})
			delay *= 2
		}
	}
	return t
}

// transient reports whether a call failed in a way that another may not.
func transient(ctx context.Context, r registry.Result, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		var args *registry.ArgsError
		refused := errors.Is(err, registry.ErrDenied) || errors.Is(err, registry.ErrNeedsConfirmation)
		return !refused && !errors.As(err, &args) && r.ErrorCategory != registry.ErrorTimeout
	}
	return r.IsError && r.ErrorCategory == registry.ErrorExecution
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
