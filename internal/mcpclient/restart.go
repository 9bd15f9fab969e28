package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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

// failed records a failure of an owner's process at the given time. The first
// restart is immediate: a server that fails once a day should not be noticed.
func (p *pool) failed(owner any, at time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failures == nil {
		p.failures = map[any]failures{}
	}
	maps.DeleteFunc(p.failures, func(_ any, f failures) bool { return time.Since(f.next) > maxPause }) // of clients that are gone
	f := p.failures[owner]
	f.count++
	f.next, f.last = at, err
	if f.count > 1 {
		f.next = at.Add(min(firstPause<<min(f.count-2, 10), maxPause))
	}
	p.failures[owner] = f
}

// failedNow records a failure for the owner of ctx. A canceled call does not count as a
// server failure.
func (p *pool) failedNow(ctx context.Context, err error) {
	if !errors.Is(context.Cause(ctx), context.Canceled) && !errors.Is(err, wire.ErrClosed) {
		p.failed(p.opts.owner(ctx), time.Now(), err)
	}
}

// answered records that an owner's process works.
func (p *pool) answered(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.failures) > 0 {
		delete(p.failures, p.opts.owner(ctx))
	}
}

// paused returns an error as long as a server that keeps failing must not be
// started.
func (p *pool) paused(owner any) error {
	p.mu.Lock()
	f := p.failures[owner]
	p.mu.Unlock()
	left := time.Until(f.next)
	if left <= 0 {
		return nil
	}
	reason := fmt.Sprintf("it failed %d times in a row; the first call in %s or later starts it again", f.count, max(left.Round(time.Second), time.Second))
	if last, ok := errors.AsType[*ServerError](f.last); ok {
		reason = last.Reason + "; " + reason
	}
	return p.opts.errorf("start", f.last, reason)
}

// lost ends what is left of a session and removes it.
func (p *pool) lost(owner any, sess *session) {
	if at, died := sess.died(); died {
		how := sess.ending(io.EOF)
		p.opts.log().Warn("the server ended", "how", how)
		p.failed(owner, at, p.opts.errorf("start", nil, how))
		sess.endWith(io.EOF) // the error of its calls, too
	}
	sess.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, owner)
}

// connectAlone waits until no other call is connecting for the same owner.
// Different owners do not wait for each other.
func (p *pool) connectAlone(ctx context.Context, owner any) (done func(), err error) {
	for {
		p.mu.Lock()
		other := p.connecting[owner]
		if other == nil {
			break
		}
		p.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	defer p.mu.Unlock()
	if p.connecting == nil {
		p.connecting = map[any]chan struct{}{}
	}
	over := make(chan struct{})
	p.connecting[owner] = over
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.connecting, owner)
		close(over)
	}, nil
}
