package serve

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/settings"
)

// TestCallsOfClientsThatLeft closes the request over HTTP with which a call has come.
func TestCallsOfClientsThatLeft(t *testing.T) {
	for name, tt := range map[string]struct {
		end   func(leave func(), s *Server, done func())
		after time.Duration // until the call is canceled
		cause error         // nil: it is not canceled while it runs
	}{
		"it has left":               {func(leave func(), _ *Server, _ func()) { leave() }, leftTime, errLeft},
		"it has left at the end":    {func(leave func(), s *Server, _ func()) { leave(); s.stop() }, 0, errLeft},
		"it is there at the end":    {func(_ func(), s *Server, _ func()) { s.stop() }, leftTime, nil},
		"the answer is on its way":  {func(leave func(), _ *Server, done func()) { done(); leave() }, 0, context.Canceled},
		"its session is closed now": {func(leave func(), s *Server, _ func()) { leave(); s.sessions.End("id") }, 0, transport.ErrSessionOver},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &Server{stopping: make(chan struct{})}
			s.sessions.Add(auth.Identity{}, openSession("id"))
			open, leave := context.WithCancel(t.Context())
			info, _ := (&transport.Inbound{Open: open}).Underway()
			ctx, done := s.untilLeft(t.Context(), "id", &mcp.CallToolRequest{Extra: &mcp.RequestExtra{TokenInfo: info}})
			defer done()
			began := time.Now()
			tt.end(leave, s, done)
			synctest.Wait()
			if got := left(ctx); got != (open.Err() != nil) {
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

// Clients with access tokens have no labels of their own in the metrics, because there may be any
// number of them, unless the settings name them.
func TestLabelsOfClients(t *testing.T) {
	s := &Server{offer: &offer{held: &held{session: &engine.Session{Settings: &settings.Settings{CallLimits: []settings.CallLimit{{Client: "ci"}, {Client: "a*"}}}}}}}
	for _, claimed := range []bool{false, true} {
		s.claimed.Store(claimed)
		for client, want := range map[string]string{"ci": "ci", "a*": "other", "anna": "other"} {
			if !claimed {
				want = client // of the token file
			}
			if got := s.labelOf(client); got != want {
				t.Errorf("%s, of an access token: %t: label %s", client, claimed, got)
			}
		}
	}
}

// openSession is a session by its id.
type openSession string

func (s openSession) ID() string { return string(s) }
func (openSession) Close() error { return nil }
