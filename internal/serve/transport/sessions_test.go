package transport

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolreg/toolreg/internal/serve/auth"
)

// TestCallsOfClientsThatLeft closes the request over HTTP with which a call has come.
func TestCallsOfClientsThatLeft(t *testing.T) {
	for name, tt := range map[string]struct {
		end   func(s *Sessions, leave, done, stop func())
		after time.Duration // until the call is canceled
		cause error         // nil: it is not canceled while it runs
	}{
		"it has left":               {func(s *Sessions, leave, done, stop func()) { leave() }, leftTime, ErrLeft},
		"it has left at the end":    {func(s *Sessions, leave, done, stop func()) { leave(); stop() }, 0, ErrLeft},
		"it is there at the end":    {func(s *Sessions, leave, done, stop func()) { stop() }, leftTime, nil},
		"the answer is on its way":  {func(s *Sessions, leave, done, stop func()) { done(); leave() }, 0, context.Canceled},
		"its session is closed now": {func(s *Sessions, leave, done, stop func()) { leave(); s.End("id") }, 0, errSessionOver},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, stopping := &Sessions{}, make(chan struct{})
			s.Add(auth.Identity{}, openSession("id"))
			open, leave := context.WithCancel(t.Context())
			ctx, done := s.Call(t.Context(), "id", &Inbound{R: httptest.NewRequestWithContext(open, "POST", "/", nil)}, stopping)
			defer done()
			began := time.Now()
			tt.end(s, leave, done, func() { close(stopping) })
			synctest.Wait()
			if got := Left(ctx); got != (open.Err() != nil) {
				t.Errorf("%s: left: %t", name, got)
			}
			select {
			case <-ctx.Done():
			case <-time.After(2 * leftTime):
			}
			if took := time.Since(began); !errors.Is(context.Cause(ctx), tt.cause) || tt.cause != nil && took != tt.after {
				t.Errorf("%s: canceled after %s: %v", name, took, context.Cause(ctx))
			}
			leave()
		})
	}
}

// A request of somebody else is none of the session.
func TestRequestsOfOtherSenders(t *testing.T) {
	s := &Sessions{}
	s.Add(auth.Identity{Name: "alice", Profile: "p"}, openSession("id"))
	for _, tt := range []struct {
		from auth.Identity
		want bool
	}{
		{auth.Identity{Name: "alice", Profile: "p", Sum: auth.HashOf("new")}, true},
		{auth.Identity{Name: "alice"}, false},
		{auth.Identity{Name: "bob", Profile: "p"}, false},
	} {
		if _, ok := s.Request("id", tt.from, false); ok != tt.want {
			t.Errorf("%+v: %v", tt.from, ok)
		}
	}
}

// openSession is a session by its id.
type openSession string

func (s openSession) ID() string { return string(s) }
func (openSession) Close() error { return nil }
