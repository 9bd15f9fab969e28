package transport

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Connections counts the connections on which clients without sessions (revision
// 2026-07-28) have made a request. It is safe for concurrent use; the zero value counts
// none.
type Connections struct {
	mu   sync.Mutex
	open map[net.Conn]*connection
	held shares
}

type connection struct {
	conn    net.Conn
	counted bool
	token   string    // name of the token of its first request
	idle    time.Time // since when it has no request; zero if it has one
}

type connectionKey struct{}

// Opened is the ConnContext function of the [http.Server].
func (c *Connections) Opened(ctx context.Context, conn net.Conn) context.Context {
	state := &connection{conn: conn}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[net.Conn]*connection{}
	}
	c.open[conn] = state
	return context.WithValue(ctx, connectionKey{}, state)
}

// Changed is the ConnState function of the [http.Server].
func (c *Connections) Changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.open[conn]
	switch {
	case of == nil:
	case state == http.StateClosed || state == http.StateHijacked:
		c.remove(of)
	case state == http.StateIdle:
		of.idle = time.Now()
	default:
		of.idle = time.Time{}
	}
}

// remove forgets a connection. c.mu is held.
func (c *Connections) remove(of *connection) {
	delete(c.open, of.conn)
	if of.counted {
		c.held.Remove(of.token)
	}
}

// Admit counts the connection of a request and reports whether its token may have that
// many connections. most is the limit for all tokens together. If it is reached, the connection
// that has been idle for longest makes room, one of this token if the token has reached its own
// share; it is returned to be closed, nil if there is none.
func (c *Connections) Admit(ctx context.Context, token string, most int) (unused net.Conn, ok bool) {
	conn, _ := ctx.Value(connectionKey{}).(*connection)
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn == nil || conn.counted {
		return nil, true
	}
	if !c.held.Room(token, most) {
		var oldest *connection
		for _, other := range c.open {
			if other.counted && !other.idle.IsZero() && c.held.Yields(other.token, token, most) &&
				(oldest == nil || other.idle.Before(oldest.idle)) {
				oldest = other
			}
		}
		if oldest == nil {
			return nil, false
		}
		c.remove(oldest)
		unused = oldest.conn
	}
	if c.held.Room(token, most) {
		conn.counted, conn.token = true, token
		c.held.Add(token)
	}
	return unused, conn.counted
}
