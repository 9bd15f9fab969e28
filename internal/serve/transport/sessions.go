package transport

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/serve/auth"
)

// Sessions tracks the sessions of HTTP clients (revisions before 2026-07-28). The SDK can close
// unused sessions too, but would wait for running calls even if their client is gone.
type Sessions struct {
	mu   sync.Mutex
	byID map[string]*clientSession
	held shares
	// Close closes a session that has ended. Over, which may be nil, is called for each that has.
	// Neither may wait.
	Close func(Session)
	Over  func(id string)
}

// Session is the SDK's part of a session.
type Session interface {
	ID() string
	Close() error
}

type clientSession struct {
	of       auth.Identity
	is       Session
	requests int       // in progress, including streams
	streams  int       // that only wait for notifications
	used     time.Time // when the last one ended, or a stream began
	calls    map[int]context.CancelCauseFunc
	serial   int // of the last call
}

// Belongs reports whether a session exists and belongs to an account.
func (s *Sessions) Belongs(id, account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byID[id]
	return c != nil && c.of.Account() == account
}

// errSessionOver is the cause with which the calls of an ended session are canceled.
var errSessionOver = errors.New("the client's session has ended")

// Add records an initialized session.
func (s *Sessions) Add(of auth.Identity, one Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[string]*clientSession{}
	}
	if s.byID[one.ID()] == nil {
		s.byID[one.ID()] = &clientSession{of: of.AnyToken(), is: one, used: time.Now()}
		s.held.Add(of.Name)
	}
}

// idle reports whether the session has no requests, other than streams, and no calls.
func (c *clientSession) idle() bool { return c.requests == c.streams && len(c.calls) == 0 }

// MakeRoom reports whether a token may have another session; most is the limit for all tokens. If
// the limit is reached and begins is set, it ends the session that has been idle for longest, one
// of this token if the token has used up its own share.
func (s *Sessions) MakeRoom(token string, most int, begins bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if room := s.held.Room(token, most); room || !begins {
		return room
	}
	var oldest string
	for id, c := range s.byID {
		if c.idle() && s.held.Yields(c.of.Name, token, most) && (oldest == "" || c.used.Before(s.byID[oldest].used)) {
			oldest = id
		}
	}
	c := s.byID[oldest]
	if c == nil {
		return false
	}
	s.endLocked(oldest, c)
	s.Close(c.is)
	return s.held.Room(token, most)
}

// Has reports whether a session has not ended.
func (s *Sessions) Has(one Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[one.ID()] != nil
}

// Counts returns the number of sessions of each token.
func (s *Sessions) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.held.of)
}

// Request counts a request of a session as in progress until done is called. The session then lasts
// as long as the request's token. It reports whether the sender has such a session.
func (s *Sessions) Request(id string, from auth.Identity, stream bool) (done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byID[id]
	if c == nil || c.of.Account() != from.Account() {
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

// call is [Sessions.Call] without a request.
func (s *Sessions) call(ctx context.Context, id string) (_ context.Context, done func()) {
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

// leftTime is how long a call continues whose client has left. The stream is gone, but a client of
// a revision with sessions may only have lost its connection.
const leftTime = time.Minute

// ErrLeft is the cause with which a call is canceled because its answer can reach nobody.
var ErrLeft = errors.New("the client has closed the connection on which it waited for the answer")

// Call returns a context for a call of a session. It is canceled at the end of the session, and
// when the client that sent the request in has left: some time later, or at once if stopping is
// closed. If in is nil, the call does not depend on a request. The caller calls done at the end of
// the call.
func (s *Sessions) Call(ctx context.Context, id string, in *Inbound,
	stopping <-chan struct{}) (_ context.Context, done func()) {
	ctx, over := s.call(ctx, id)
	if in == nil {
		return ctx, over
	}
	open := in.R.Context() // until the response is over, or its client is gone
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(open, func() {
		select {
		case <-time.After(leftTime):
		case <-stopping:
		case <-ctx.Done():
		}
		cancel(ErrLeft)
	})
	return context.WithValue(ctx, openKey{}, open), func() { stop(); cancel(nil); over() }
}

type openKey struct{}

// Left reports whether the client of ctx's HTTP request has left.
func Left(ctx context.Context) bool {
	open, ok := ctx.Value(openKey{}).(context.Context)
	return ok && open.Err() != nil
}

// End forgets a session and cancels its calls. It returns the session, to be closed, or nil if
// there is none.
func (s *Sessions) End(id string) Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byID[id]
	if c == nil {
		return nil
	}
	s.endLocked(id, c)
	return c.is
}

// EndIdle ends idle sessions or, if all is set, every session. Before each is forgotten, it calls
// end in place of Close. end must not wait.
func (s *Sessions) EndIdle(all bool, end func(Session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, c := range s.byID {
		if all || c.idle() {
			end(c.is)
			s.endLocked(id, c)
		}
	}
}

func (s *Sessions) endLocked(id string, c *clientSession) {
	delete(s.byID, id)
	s.held.Remove(c.of.Name)
	if s.Over != nil {
		s.Over(id)
	}
	for _, cancel := range c.calls {
		cancel(errSessionOver)
	}
}

// EndUnused ends sessions that have been unused for longer than idle. Zero means no limit.
func (s *Sessions) EndUnused(idle time.Duration) {
	s.endIf(func(c *clientSession) bool {
		return idle > 0 && c.requests == 0 && time.Since(c.used) >= idle
	})
}

// EndOf ends sessions whose tokens are no longer valid.
func (s *Sessions) EndOf(invalid func(auth.Identity) bool) {
	s.endIf(func(c *clientSession) bool { return invalid(c.of) })
}

func (s *Sessions) endIf(over func(*clientSession) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, c := range s.byID {
		if over(c) {
			s.endLocked(id, c)
			s.Close(c.is)
		}
	}
}

// SessionIDs chooses the ids of sessions over HTTP. The SDK asks for one without saying for which
// request, so requests that may begin a session take turns until it has asked, or answers.
type SessionIDs struct {
	mu sync.Mutex
	id func() string // of the next session
}

// Next is the GetSessionID function of the [mcp.ServerOptions].
func (s *SessionIDs) Next() string { return s.id() }

// Begin returns a handler that gives the session that a request begins this id.
func (s *SessionIDs) Begin(by http.Handler, id string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		turn := sync.OnceFunc(s.mu.Unlock)
		defer turn()
		s.id = func() string { defer turn(); return id }
		by.ServeHTTP(BeforeAnswer{w, turn}, r)
	})
}
