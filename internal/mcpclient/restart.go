package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/wire"
)

const (
	// firstPause is how long a server that failed twice in a row is not started;
	// each further failure doubles the pause.
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// failures counts how often a server failed since it last answered a call: it did
// not start, did not list its tools, or exited unexpectedly.
type failures struct {
	count int
	next  time.Time // not started before
	last  error
}

// restarts decides when a server that failed may be started again. It is safe for
// concurrent use.
type restarts struct {
	opts     *Options
	mu       sync.Mutex
	failures map[any]failures // keyed by owner
}

// failed records a failure of an owner's process at the given time. The first
// restart is immediate: a server that fails once a day should not be noticed.
func (r *restarts) failed(owner any, at time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures == nil {
		r.failures = map[any]failures{}
	}
	maps.DeleteFunc(r.failures, func(_ any, f failures) bool { return time.Since(f.next) > maxPause }) // of clients that are gone
	f := r.failures[owner]
	f.count++
	f.next, f.last = at, err
	if f.count > 1 {
		f.next = at.Add(min(firstPause<<min(f.count-2, 10), maxPause))
	}
	r.failures[owner] = f
}

// failedNow records a failure for the owner of ctx. A canceled call does not count as a
// server failure.
func (r *restarts) failedNow(ctx context.Context, err error) {
	if !errors.Is(context.Cause(ctx), context.Canceled) && !errors.Is(err, wire.ErrClosed) {
		r.failed(r.opts.owner(ctx), time.Now(), err)
	}
}

// forget permits every process to be started at once.
func (r *restarts) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.failures)
}

// answered records that an owner's process works.
func (r *restarts) answered(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failures) > 0 {
		delete(r.failures, r.opts.owner(ctx))
	}
}

// paused returns an error as long as a server that keeps failing must not be
// started.
func (r *restarts) paused(owner any) error {
	r.mu.Lock()
	f := r.failures[owner]
	r.mu.Unlock()
	left := time.Until(f.next)
	if left <= 0 {
		return nil
	}
	reason := fmt.Sprintf("it failed %d times in a row; the first call in %s or later starts it again", f.count, max(left.Round(time.Second), time.Second))
	if last, ok := errors.AsType[*ServerError](f.last); ok {
		reason = last.Reason + "; " + reason
	}
	return r.opts.errorf("start", f.last, reason)
}
