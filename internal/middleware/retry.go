// Package middleware implements the output limit, the cache of results, and
// retries. The Wrap method of each type is a [registry.Middleware], which package
// engine adds to an exec.Executor.
package middleware

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/timing"
)

// Defaults and limits for [Retry].
const (
	DefaultDelay = 500 * time.Millisecond
	maxDelay     = time.Minute
	maxRetries   = 20
)

// Retry repeats failed calls of tools for which that is safe (see
// [Repeatable]); other tools are not affected.
type Retry struct {
	Retries int           // maximum number of retries, up to 20
	Delay   time.Duration // delay before the first retry, doubled each time up to a minute; 0 means DefaultDelay
}

// Wrap is a [registry.Middleware]. It does not repeat a call that was canceled,
// timed out or had invalid params.
func (r Retry) Wrap(t registry.Tool) registry.Tool {
	if r.Retries <= 0 || !Repeatable(&t) {
		return t
	}
	run := t.Run
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		call.Keep, call.Spill = 0, nil // otherwise the file would have the output of every attempt
		delay, last := cmp.Or(r.Delay, DefaultDelay), call.Last
		for attempt := 1; ; attempt++ {
			final := attempt > min(r.Retries, maxRetries)
			call.Last = last && final // the server must keep running for a retry
			result, err := run(ctx, call)
			if attempt > 1 {
				result.Attempts = attempt
			}
			if final || !transient(ctx, result, err) || timing.Pause(ctx, min(delay, maxDelay)) != nil {
				return result, err
			}
			call.Progress(registry.Progress{Message: "failed, trying again"})
			delay *= 2
		}
	}
	return t
}

// transient reports whether a failed call may succeed if it is repeated.
func transient(ctx context.Context, r registry.Result, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		_, invalid := errors.AsType[*registry.ArgsError](err)
		refused := errors.Is(err, registry.ErrDenied) || errors.Is(err, registry.ErrNeedsConfirmation)
		return !refused && !invalid && r.ErrorCategory != registry.ErrorTimeout
	}
	return r.IsError && r.ErrorCategory == registry.ErrorExecution
}

// ReadOnly reports whether a tool changes nothing, according to its category or to
// the readOnlyHint of a trusted server. A composite is never read-only: whatever
// its category, its steps may change something, and each step is decided on, cached
// and retried by itself.
func ReadOnly(t *registry.Tool) bool {
	if t.Source == registry.SourceComposite {
		return false
	}
	if !t.OfServer() {
		return t.Category == registry.CategoryRead
	}
	return t.Trusted && (t.Category == registry.CategoryRead || hint(t, "readOnlyHint"))
}

// Repeatable reports whether a call of a tool may be repeated: the tool only
// reads, or a trusted server declares it idempotent.
func Repeatable(t *registry.Tool) bool {
	return ReadOnly(t) || t.OfServer() && t.Trusted && hint(t, "idempotentHint")
}

// hint returns the value of one boolean annotation (MCP revision 2025-11-25).
func hint(t *registry.Tool, name string) bool {
	return string(jsonx.Get(t.Annotations, name)) == "true"
}
