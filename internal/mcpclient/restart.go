package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/wire"

	"github.com/toolreg/toolreg/internal/caller"
)

const (
	// firstPause is how long a server that failed a second time is not started; each
	// further failure doubles the pause.
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// failures are how often a server failed since it last answered a call: it did not
// start, did not list its tools, or ended without being asked to.
type failures struct {
	count int
	next  time.Time // not started before
	last  error
}

// failed counts a failure of an owner's process at a time. The first restart is
// immediate: a server that fails once a day should not be noticed.
func (s *Source) failed(owner any, at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures == nil {
		s.failures = map[any]failures{}
	}
	maps.DeleteFunc(s.failures, func(_ any, f failures) bool { return time.Since(f.next) > maxPause }) // of clients that are gone
	f := s.failures[owner]
	f.count++
	f.next, f.last = at, err
	if f.count > 1 {
		f.next = at.Add(min(firstPause<<min(f.count-2, 10), maxPause))
	}
	s.failures[owner] = f
}

// failedNow counts a failure on behalf of ctx. Whoever goes away says nothing about the
// server.
func (s *Source) failedNow(ctx context.Context, err error) {
	if !errors.Is(context.Cause(ctx), context.Canceled) && !errors.Is(err, wire.ErrClosed) {
		s.failed(s.owner(ctx), time.Now(), err)
	}
}

// answered notes that an owner's process works.
func (s *Source) answered(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failures) > 0 {
		delete(s.failures, s.owner(ctx))
	}
}

// Paused reports whether the server failed several times in a row, so that it is not
// started yet.
func (s *Source) Paused() bool { return s.paused(nil) != nil }

// paused returns an error while a server that keeps failing is not started.
func (s *Source) paused(owner any) error {
	s.mu.Lock()
	f := s.failures[owner]
	s.mu.Unlock()
	left := time.Until(f.next)
	if left <= 0 {
		return nil
	}
	reason := fmt.Sprintf("it failed %d times in a row; the first call in %s or later starts it again", f.count, max(left.Round(time.Second), time.Second))
	if last, ok := errors.AsType[*ServerError](f.last); ok {
		reason = last.Reason + "; " + reason
	}
	return s.errorf("start", f.last, reason)
}

// Retry starts or reaches the shared process of a server that failed or has ended, within
// the connect timeout. If the server is paused, it fails at once. The error is a
// *ServerError that says when the server can be started again.
func (s *Source) Retry(ctx context.Context) error {
	ctx, stop := s.deadline(caller.With(ctx, nil))
	defer stop()
	err := s.paused(nil)
	if err == nil {
		_, err = s.session(ctx)
	}
	if err == nil {
		return nil
	}
	err = cmp.Or(s.paused(nil), err)
	s.setState(failedState(err), err)
	return err
}

// Lost reports whether clients wait for changes of resources, but the shared process has
// ended.
func (s *Source) Lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions[nil]
	return len(s.subscribed) > 0 && (sess == nil || !sess.wire.Alive())
}

// lost ends what is left of a session and forgets it.
func (s *Source) lost(owner any, sess *session) {
	if at, died := sess.died(); died {
		how := sess.ending(io.EOF)
		s.log().Warn("the server ended", "how", how)
		s.failed(owner, at, s.errorf("start", nil, how))
		sess.endWith(io.EOF) // to its calls it is that, too
	}
	sess.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, owner)
}

// connectAlone waits until no other call connects for an owner. The owners do not
// wait for each other.
func (s *Source) connectAlone(ctx context.Context, owner any) (done func(), err error) {
	for {
		s.mu.Lock()
		other := s.connecting[owner]
		if other == nil {
			break
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	defer s.mu.Unlock()
	if s.connecting == nil {
		s.connecting = map[any]chan struct{}{}
	}
	over := make(chan struct{})
	s.connecting[owner] = over
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.connecting, owner)
		close(over)
	}, nil
}
