package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/timing"
)

// pool has the sessions with a server: one for all clients or, with perClient, one for each. It is
// safe for concurrent use.
type pool struct {
	connector connector
	opts      *Options
	status    *status
	opened    func(context.Context, *session) // called with each new session
	restarts  restarts

	mu         sync.Mutex
	sessions   map[any]*session                // keyed by owner; nil is the shared session
	leaving    []*session                      // forgotten by the server, with calls that are running
	connecting map[any]chan struct{}           // keyed by owner; closed when connecting has succeeded or failed
	closed     bool                            // close was called
	cancels    map[int]context.CancelCauseFunc // for the connections in progress
	attempts   int                             // number of attempts so far
}

// live returns the session for a call. If it was lost, live returns a new one, because the call has
// not reached the server yet.
func (p *pool) live(ctx context.Context) (*session, error) {
	p.mu.Lock()
	sess, closed := p.sessions[p.opts.owner(ctx)], p.closed
	p.mu.Unlock()
	switch {
	case closed:
		return nil, p.opts.errorf("tools/call", wire.ErrClosed, wire.ErrClosed.Error())
	case sess != nil && sess.wire.Alive():
		return sess, nil
	}
	ctx, stop := p.deadline(ctx)
	defer stop()
	sess, err := p.get(ctx)
	if err != nil {
		p.status.set(failedState(err), err)
		return nil, err
	}
	sess.limit.Store(p.opts.Limits.result())
	p.status.set(StateConnected, nil)
	if p.opts.owner(ctx) == nil {
		p.connector.changed(Change{List: listTools})
	}
	return sess, nil
}

// get returns the session, or a new one if there is none or it was lost.
func (p *pool) get(ctx context.Context) (*session, error) {
	owner := p.opts.owner(ctx)
	done, err := p.connectAlone(ctx, owner)
	if err != nil {
		return nil, p.opts.errorf("start", err, err.Error())
	}
	defer done()
	p.mu.Lock()
	sess, several, closed := p.sessions[owner], len(p.sessions), p.closed
	p.mu.Unlock()
	switch {
	case closed:
		return nil, p.opts.errorf("start", wire.ErrClosed, wire.ErrClosed.Error())
	case sess != nil && sess.wire.Alive():
		return sess, nil
	case sess != nil:
		p.dropSession(owner, sess)
	case several > maxOwners:
		return nil, p.opts.errorf("start", nil,
			fmt.Sprintf("more than %d clients have a process of their own (perClient)", maxOwners))
	}
	if err := p.restarts.paused(owner); err != nil {
		return nil, err
	}
	if sess, err = p.open(ctx); err != nil {
		p.restarts.failedNow(ctx, err)
	}
	return sess, err
}

func (p *pool) open(ctx context.Context) (*session, error) {
	sess, err := p.connector.connect(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		sess.end()
		return nil, p.opts.errorf("initialize", wire.ErrClosed, wire.ErrClosed.Error())
	}
	p.sessions[p.opts.owner(ctx)], sess.used = sess, time.Now()
	p.mu.Unlock()
	p.connector.recordReached(ctx, sess)
	p.opened(ctx, sess)
	go p.report(sess)
	return sess, nil
}

// deadline sets the time limit on connecting and listing, and makes Close end
// both.
func (p *pool) deadline(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	p.attempts++
	n := p.attempts
	p.cancels[n] = cancel
	if p.closed {
		cancel(wire.ErrClosed)
	}
	p.mu.Unlock()
	done := func() {
		cancel(nil)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.cancels, n)
	}
	limit := cmp.Or(p.opts.ConnectTimeout, p.opts.Server.ConnectTimeout)
	ctx, stop := timing.Limit(ctx, limit, &connectTimeoutError{limit})
	return ctx, func() { stop(); done() }
}

// shared returns the shared session, or nil if there is none.
func (p *pool) shared() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessions[nil]
}

// closeIdle implements [Source.CloseIdle]. needed reports that the shared session is in use
// even if nothing is called.
func (p *pool) closeIdle(d time.Duration, gone func(owner any) bool, needed bool) {
	p.mu.Lock()
	sessions := maps.Clone(p.sessions)
	if needed {
		delete(sessions, nil)
	}
	p.mu.Unlock()
	for owner, sess := range sessions {
		unused := d
		if owner != nil && gone(owner) {
			unused = time.Nanosecond
		}
		if unused <= 0 || !sess.wire.Alive() && owner == nil || !sess.idle(unused) {
			continue
		}
		p.opts.log().Debug("closing an idle server", "server", p.opts.Server.Name)
		sess.end()
		p.mu.Lock()
		if owner != nil && p.sessions[owner] == sess {
			delete(p.sessions, owner)
		}
		p.mu.Unlock()
	}
}

// close ends all sessions and prevents new ones.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for _, cancel := range p.cancels {
		cancel(wire.ErrClosed)
	}
	p.mu.Unlock()
	p.endSessions()
}

func (p *pool) endSessions() {
	p.mu.Lock()
	sessions := slices.AppendSeq(slices.Clone(p.leaving), maps.Values(p.sessions))
	p.mu.Unlock()
	var ending sync.WaitGroup
	for _, sess := range sessions {
		ending.Go(sess.end)
	}
	ending.Wait()
}

// report logs when a server ends by itself.
func (p *pool) report(sess *session) {
	<-sess.wire.Done()
	if _, died := sess.died(); died {
		p.opts.log().Warn("the server ended", "how", sess.ending(io.EOF))
	}
}

// dropSession ends what is left of a session and removes it.
func (p *pool) dropSession(owner any, sess *session) {
	if at, died := sess.died(); died {
		p.restarts.failed(owner, at, p.opts.errorf("start", nil, sess.ending(io.EOF)))
		sess.endWith(io.EOF) // running calls fail with this error too
	}
	leaving := sess.isLeaving()
	if !leaving {
		sess.end()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, owner)
	if leaving {
		p.leaving = append(slices.DeleteFunc(p.leaving, func(s *session) bool { return s.wire.Over() }), sess)
	}
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
	over := make(chan struct{})
	p.connecting[owner] = over
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.connecting, owner)
		close(over)
	}, nil
}

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

// restarts decides when a failed server may be started again. It is safe for concurrent use.
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
	// Forget failures of clients that are gone.
	maps.DeleteFunc(r.failures, func(_ any, f failures) bool { return time.Since(f.next) > maxPause })
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

// recordSuccess records that an owner's process works.
func (r *restarts) recordSuccess(ctx context.Context) {
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
	reason := fmt.Sprintf("it failed %d times in a row; the first call in %s or later starts it again",
		f.count, max(left.Round(time.Second), time.Second))
	if last, ok := errors.AsType[*ServerError](f.last); ok {
		reason = last.Reason + "; " + reason
	}
	return r.opts.errorf("start", f.last, reason)
}
