package serve

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// connections counts the connections on which clients without sessions (revision
// 2026-07-28) have made a request. It is safe for concurrent use; the zero value counts
// none.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]*connection
	held shares
}

type connection struct {
	counted bool
	token   string // name of the token of its first request
}

type connectionKey struct{}

// Opened is the ConnContext function of the [http.Server].
func (c *connections) Opened(ctx context.Context, conn net.Conn) context.Context {
	state := &connection{}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[net.Conn]*connection{}
	}
	c.open[conn] = state
	return context.WithValue(ctx, connectionKey{}, state)
}

// Changed is the ConnState function of the [http.Server].
func (c *connections) Changed(conn net.Conn, state http.ConnState) {
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

// Admit counts the connection of a request and reports whether its token may have that
// many connections. most is the limit for all tokens together.
func (c *connections) Admit(ctx context.Context, token string, most int) bool {
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
