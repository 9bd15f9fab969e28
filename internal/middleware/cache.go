// Package middleware implements the output limit, the cache of results, and
// retries. The Wrap method of each type is a [registry.Middleware], which package
// engine adds to an exec.Executor.
package middleware

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/timing"
)

// Limits on the cache of results.
const (
	maxCached   = 8 << 20 // maximum size of an encoded result in bytes
	cacheAge    = 7 * 24 * time.Hour
	cacheFiles  = 1000
	cacheFormat = 2
)

// Cache reuses the results of tools that only read (see [ReadOnly]); other tools
// are not affected. A result is stored under the tool's fingerprint, the canonical
// params, what rules hide from the call, Scope, the caller's token and Credentials, in a file that
// only the user can read. It does not store failed calls, or calls during which the tool asked a
// person or a model, so that the tool can ask again. All fields but Renew and Scope are required.
type Cache struct {
	Dir   *state.Dir
	TTL   time.Duration
	Renew bool             // ignore and replace stored results
	Scope string           // anything else that results depend on, such as the workspace
	Now   func() time.Time // the time at which results are stored and used
	// Credentials returns what a call of the tool authenticates with, because others may
	// get other results. Only a hash with Key is stored. If one of them fails, nothing is
	// cached.
	Credentials func(ctx context.Context, t *registry.Tool) (string, error)
	Key         func(ctx context.Context) ([]byte, error)
	// Failed is called when a result cannot be stored.
	Failed func(error)
}

// Wrap is a [registry.Middleware].
func (c Cache) Wrap(t registry.Tool) registry.Tool {
	if c.TTL <= 0 || c.Dir == nil || !ReadOnly(&t) {
		return t
	}
	run, fingerprint, of := t.Run, t.Fingerprint(), t
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		name, err := c.name(ctx, &of, fingerprint, jsonx.Canonical(call.Params), call.HidesKey)
		if err != nil {
			c.Failed(err)
			return run(ctx, call)
		}
		if r, ok := c.load(name); ok && !c.Renew {
			return r, nil
		}
		call.Keep, call.Spill = 0, nil // a result is stored completely or not at all
		r, err := run(ctx, call)
		if err == nil && !r.IsError && !r.Truncated && !r.Asked {
			if err := c.store(name, r); err != nil {
				c.Failed(err)
			}
		}
		return r, err
	}
	return t
}

func (c Cache) name(ctx context.Context, t *registry.Tool, parts ...string) (string, error) {
	credentials, err := c.Credentials(ctx, t)
	if err != nil {
		return "", err
	}
	key, err := c.Key(ctx)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	for _, part := range append(parts, c.Scope, caller.Token(ctx), credentials) {
		fmt.Fprintf(mac, "%q", part)
	}
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// cachedResult is the content of the file of one result.
type cachedResult struct {
	Format   int
	Stored   time.Time
	Duration time.Duration
	Result   registry.StoredResult
}

// load returns a stored result unless it is too old. It ignores files that cannot
// be read.
func (c Cache) load(name string) (registry.Result, bool) {
	data, err := c.Dir.Read(name)
	if err != nil {
		return registry.Result{}, false
	}
	var k cachedResult
	if json.Unmarshal(data, &k) != nil || k.Format != cacheFormat {
		return registry.Result{}, false
	}
	if age := c.Now().Sub(k.Stored); age < 0 || age >= c.TTL {
		return registry.Result{}, false
	}
	r := k.Result.Result()
	r.Duration, r.Cached = k.Duration, true
	return r, true
}

func (c Cache) store(name string, r registry.Result) error {
	data, err := jsonx.Marshal(cachedResult{cacheFormat, c.Now(), r.Duration, r.Stored()})
	if err != nil || len(data) > maxCached {
		return err
	}
	if err := c.Dir.Put(name, data); err != nil {
		return err
	}
	return c.Dir.Sweep(c.Now(), state.Bounds{Age: cacheAge, Files: cacheFiles})
}

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
