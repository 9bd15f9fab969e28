package mcpclient

import (
	"context"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// firstPause is how long a server that failed a second time is not started; each
	// further failure doubles the pause.
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// failures are how often a server failed since it last answered a call: it did not
// start, or it ended without being asked to.
type failures struct {
	count int
	next  time.Time // not started before
}

// failed counts a failure of an owner's process at a time. The first restart is
// immediate: a server that fails once a day should not be noticed.
func (s *Source) failed(owner any, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures == nil {
		s.failures = map[any]failures{}
	}
	maps.DeleteFunc(s.failures, func(_ any, f failures) bool { return time.Since(f.next) > maxPause }) // of clients that are gone
	f := s.failures[owner]
	f.count++
	f.next = at
	if f.count > 1 {
		f.next = at.Add(min(firstPause<<min(f.count-2, 10), maxPause))
	}
	s.failures[owner] = f
}

// answered notes that an owner's process works.
func (s *Source) answered(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failures) > 0 {
		delete(s.failures, s.owner(ctx))
	}
}

// paused returns an error while a server that keeps failing is not started.
func (s *Source) paused(owner any) error {
	s.mu.Lock()
	f := s.failures[owner]
	s.mu.Unlock()
	left := time.Until(f.next)
	if left <= 0 {
		return nil
	}
	return s.errorf("start", nil, fmt.Sprintf("it failed %d times in a row; the first call in %s or later starts it again", f.count, max(left.Round(time.Second), time.Second)))
}

// lost ends what is left of a session and forgets it.
func (s *Source) lost(owner any, sess *session) {
	if at, died := sess.died(); died {
		s.log().Warn("the server ended", "how", sess.ending(io.EOF))
		s.failed(owner, at)
		sess.endWith(mcp.ErrConnectionClosed) // to its calls it is that, too
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
