package serve

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/serve/fair"
)

// stallTime is how long a client may leave an answer unread.
const stallTime = 30 * time.Second

// steady is a response that closes its connection if the client does not read it.
type steady struct {
	http.ResponseWriter
	timing *http.ResponseController
}

func newSteady(w http.ResponseWriter) steady { return steady{w, http.NewResponseController(w)} }

// limit limits the time of one write. The returned function lifts the limit, because a
// stream may be silent for longer.
func (s steady) limit() func() {
	_ = s.timing.SetWriteDeadline(time.Now().Add(stallTime))
	return func() { _ = s.timing.SetWriteDeadline(time.Time{}) }
}

// Write implements http.ResponseWriter.
func (s steady) Write(p []byte) (int, error) {
	defer s.limit()()
	return s.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (s steady) Flush() {
	defer s.limit()()
	_ = s.timing.Flush()
}

// Unwrap is for http.ResponseController.
func (s steady) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// connections counts the connections of clients without sessions (revision
// 2026-07-28): those on which such a client has made a request. The zero value counts
// none.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]*connection
	held fair.Shares
}

type connection struct {
	counted bool
	token   string // the name of that of its first request
}

type connectionKey struct{}

// opened is for [http.Server].ConnContext.
func (c *connections) opened(ctx context.Context, conn net.Conn) context.Context {
	state := &connection{}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[net.Conn]*connection{}
	}
	c.open[conn] = state
	return context.WithValue(ctx, connectionKey{}, state)
}

// changed is for [http.Server].ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if closed := c.open[conn]; closed != nil && closed.counted {
		c.held.Remove(closed.token)
	}
	delete(c.open, conn)
}

// admit counts the connection of a request, and reports whether its token may have that
// many; most is the limit of all tokens.
func (c *connections) admit(ctx context.Context, token string, most int) bool {
	conn, _ := ctx.Value(connectionKey{}).(*connection)
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn == nil || conn.counted {
		return true
	}
	if !c.held.Room(token, most) {
		return false
	}
	conn.counted, conn.token = true, token
	c.held.Add(token)
	return true
}
