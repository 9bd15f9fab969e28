package serve

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolreg/toolreg/internal/serve/auth"
)

// sessions tracks the sessions of clients over HTTP (revisions before 2026-07-28). The
// SDK could close unused ones itself, but it would wait for running calls even if their
// client is gone.
type sessions struct {
	mu   sync.Mutex
	byID map[string]*clientSession
	held shares
	over func(id string) // is told of sessions that have ended; it must not wait. nil: nobody is
}

type clientSession struct {
	of       auth.Identity
	session  *mcp.ServerSession
	requests int       // in progress, including streams
	streams  int       // that only wait for notifications
	used     time.Time // when the last one ended, or a stream began
	calls    map[int]context.CancelCauseFunc
	serial   int // of the last call
}

// belongs reports whether there is such a session and it belongs to an account.
func (s *sessions) belongs(id, account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byID[id]
	return c != nil && c.of.Account() == account
}

// errSessionOver is the cause with which the calls of an ended session are canceled.
var errSessionOver = errors.New("the client's session has ended")

// add records an initialized session.
func (s *sessions) add(of auth.Identity, session *mcp.ServerSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[string]*clientSession{}
	}
	if s.byID[session.ID()] == nil {
		s.byID[session.ID()] = &clientSession{of: of.AnyToken(), session: session, used: time.Now()}
		s.held.Add(of.Name)
	}
}

// idle reports whether the session has no requests, other than streams, and no calls.
func (c *clientSession) idle() bool { return c.requests == c.streams && len(c.calls) == 0 }

// makeRoom reports whether a token may have another session if most is the limit for all
// tokens. If the limit is reached and a session begins, it ends the one that has been idle
// for longest, of this token if the token has reached its own share, and returns it to be
// closed; nil if it ended none.
func (s *sessions) makeRoom(token string, most int, begins bool) (ended *mcp.ServerSession, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if room := s.held.Room(token, most); room || !begins {
		return nil, room
	}
	var oldest string
	for id, c := range s.byID {
		if c.idle() && s.held.Yields(c.of.Name, token, most) && (oldest == "" || c.used.Before(s.byID[oldest].used)) {
			oldest = id
		}
	}
	c := s.byID[oldest]
	if c == nil {
		return nil, false
	}
	s.endLocked(oldest, c)
	return c.session, s.held.Room(token, most)
}

// has reports whether a session has not ended.
func (s *sessions) has(session *mcp.ServerSession) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[session.ID()] != nil
}

// counts returns how many each token has.
func (s *sessions) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.held.of)
}

// request records a request of a session, which is in use until done is called, and lasts as long
// as the token of the request. It reports whether there is such a session.
func (s *sessions) request(id string, from auth.Identity, stream bool) (done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byID[id]
	if c == nil {
		return nil, false
	}
	c.requests++
	if stream {
		c.streams++
		c.used = time.Now()
	}
	if from.Expires.After(c.of.Expires) {
		c.of = from.AnyToken()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.requests--
		if stream {
			c.streams--
		}
		c.used = time.Now()
	}, true
}

// call returns a context for a call that is canceled at the end of the session. The
// caller calls done at the end of the call.
func (s *sessions) call(ctx context.Context, id string) (_ context.Context, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byID[id]
	if c == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if c.calls == nil {
		c.calls = map[int]context.CancelCauseFunc{}
	}
	c.serial++
	n := c.serial
	c.calls[n] = cancel
	return ctx, func() {
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(c.calls, n)
	}
}

// end forgets a session and cancels its calls. It returns the session to be closed; nil if
// there is none.
func (s *sessions) end(id string) *mcp.ServerSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byID[id]
	if c == nil {
		return nil
	}
	s.endLocked(id, c)
	return c.session
}

// endIdle ends the sessions that are idle; if all is set, it ends every session. It calls end with each, which must not wait, before it is
// forgotten, and returns them to be closed.
func (s *sessions) endIdle(all bool, end func(id string)) []*mcp.ServerSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*mcp.ServerSession
	for id, c := range s.byID {
		if all || c.idle() {
			end(id)
			s.endLocked(id, c)
			out = append(out, c.session)
		}
	}
	return out
}

func (s *sessions) endLocked(id string, c *clientSession) {
	delete(s.byID, id)
	s.held.Remove(c.of.Name)
	if s.over != nil {
		s.over(id)
	}
	for _, cancel := range c.calls {
		cancel(errSessionOver)
	}
}

// endUnused ends the sessions that were unused for too long, and returns them to be
// closed; 0 means that none was.
func (s *sessions) endUnused(idle time.Duration) []*mcp.ServerSession {
	return s.endIf(func(c *clientSession) bool {
		return idle > 0 && c.requests == 0 && time.Since(c.used) >= idle
	})
}

// endOf ends the sessions of those whose tokens are not valid any more, and returns them to be
// closed.
func (s *sessions) endOf(invalid func(auth.Identity) bool) []*mcp.ServerSession {
	return s.endIf(func(c *clientSession) bool { return invalid(c.of) })
}

func (s *sessions) endIf(over func(*clientSession) bool) []*mcp.ServerSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*mcp.ServerSession
	for id, c := range s.byID {
		if over(c) {
			s.endLocked(id, c)
			out = append(out, c.session)
		}
	}
	return out
}
