package serve

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// stallTime is how long a client may leave an answer unread.
const stallTime = 30 * time.Second

// steady is an answer that ends with its connection if the client does not read it.
type steady struct {
	http.ResponseWriter
	timing *http.ResponseController
}

func newSteady(w http.ResponseWriter) steady { return steady{w, http.NewResponseController(w)} }

// limit limits the time of one write. The returned function ends that, because a
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
// 2026-07-28): those on which such a client has made a request.
type connections struct {
	open  sync.Map // *connection by net.Conn
	count atomic.Int64
}

type connection struct{ counted atomic.Bool }

type connectionKey struct{}

// opened is for [http.Server].ConnContext.
func (c *connections) opened(ctx context.Context, conn net.Conn) context.Context {
	state := &connection{}
	c.open.Store(conn, state)
	return context.WithValue(ctx, connectionKey{}, state)
}

// changed is for [http.Server].ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	v, _ := c.open.LoadAndDelete(conn)
	if closed, ok := v.(*connection); ok && closed.counted.Load() {
		c.count.Add(-1)
	}
}

// admit counts the connection of a request, and reports whether there are at most n;
// 0 means any number.
func (c *connections) admit(ctx context.Context, n int) bool {
	conn, _ := ctx.Value(connectionKey{}).(*connection)
	if conn == nil || conn.counted.Load() {
		return true
	}
	if count := c.count.Add(1); n > 0 && count > int64(n) {
		c.count.Add(-1)
		return false
	}
	conn.counted.Store(true)
	return true
}
