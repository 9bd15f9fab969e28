package transport

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// slotTime is how long a request may keep its slot. Most need less; one that waits for a server
	// or a person must not delay the others.
	slotTime = time.Millisecond
	// slotsEach is the number of slots for each processor, so that it has work while a server
	// answers. If more requests wait than there are slots, each processor has only one, so that the
	// next request does not wait for many others.
	slotsEach = 4
)

// Slots decides which request is processed next, so that a client that sends many requests delays
// only itself. It is safe for concurrent use.
type Slots struct {
	// Processors is the number of processors for requests. If zero, no request gets a slot.
	Processors int

	mu      sync.Mutex
	working int // tickets that have a slot
	waiting int // tickets in queue
	queue   queue
}

// ticket is a request that waits for a slot or has one. slots.mu guards given and over.
type ticket struct {
	ready chan struct{} // closed when it gets a slot
	given bool          // it got one
	over  bool          // it has released its slot or stopped waiting
}

// Take waits for a slot. from is the path to the sender, such as a token and one of its sessions:
// all tokens get equal shares, and so do all sessions of one token. done or slotTime releases the
// slot. If ctx is canceled, done does not release it, because a call continues for a while after
// its client has canceled it.
func (s *Slots) Take(ctx context.Context, from ...string) (done func(), err error) {
	t := &ticket{ready: make(chan struct{})}
	s.mu.Lock()
	s.queue.add(t, from)
	s.waiting++
	s.grant()
	s.mu.Unlock()
	select {
	case <-t.ready:
	case <-ctx.Done():
		s.end(t)
		return nil, context.Cause(ctx)
	}
	limit := time.AfterFunc(slotTime, func() { s.end(t) })
	return func() {
		if ctx.Err() == nil && limit.Stop() {
			s.end(t)
		}
	}, nil
}

// end releases a slot or stops waiting for one.
func (s *Slots) end(t *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	working := t.given && !t.over
	t.over = true
	if working {
		s.working--
		s.grant()
	}
}

// grant assigns free slots to waiting tickets. s.mu is held.
func (s *Slots) grant() {
	for s.waiting > 0 {
		most := s.Processors * slotsEach
		if s.waiting > most {
			most = s.Processors
		}
		if s.working >= most {
			return
		}
		s.waiting--
		if t := s.queue.next(); !t.over {
			t.given = true
			s.working++
			close(t.ready)
		}
	}
}

// queue holds the tickets of one sender, or the queues of several senders, which take
// turns. The zero value is empty.
type queue struct {
	tickets []*ticket
	turns   []string // the senders below, the next one first
	below   map[string]*queue
}

func (q *queue) empty() bool { return len(q.tickets)+len(q.turns) == 0 }

func (q *queue) add(t *ticket, from []string) {
	if len(from) == 0 {
		q.tickets = append(q.tickets, t)
		return
	}
	sender := q.below[from[0]]
	if sender == nil {
		sender = &queue{}
		if q.below == nil {
			q.below = map[string]*queue{}
		}
		q.below[from[0]] = sender
		q.turns = append(q.turns, from[0])
	}
	sender.add(t, from[1:])
}

// next removes and returns the ticket whose turn it is. The queue is not empty.
func (q *queue) next() *ticket {
	if len(q.tickets) > 0 {
		t := q.tickets[0]
		q.tickets = q.tickets[1:]
		return t
	}
	name := q.turns[0]
	q.turns = q.turns[1:]
	sender := q.below[name]
	t := sender.next()
	if sender.empty() {
		delete(q.below, name)
	} else {
		q.turns = append(q.turns, name)
	}
	return t
}

// shares counts how much of a limited resource, such as sessions, each token uses. The
// zero value is ready to use. It is not safe for concurrent use.
type shares struct {
	all int
	of  map[string]int // by the name of the token
}

// Room reports whether a token may have one more; most is the limit for all tokens. Zero means no
// limit. A tenth of most is reserved for other tokens.
func (s *shares) Room(name string, most int) bool {
	return most <= 0 || s.all < most && s.of[name] < most-most/10
}

// Yields reports whether an unused one of holder may end so that the token name gets one more: its
// own, or anybody's if the limit for all is reached and the token has not used up its share.
func (s *shares) Yields(holder, name string, most int) bool {
	return holder == name || s.all >= most && s.of[name] < most-most/10
}

// Add counts one more for a token.
func (s *shares) Add(name string) {
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.all++
	s.of[name]++
}

// Remove counts one less for a token, which must have at least one.
func (s *shares) Remove(name string) {
	s.all--
	if s.of[name]--; s.of[name] == 0 {
		delete(s.of, name)
	}
}

// clientsAtOnce is the ratio of the limit for calls of all clients to that for one token.
const clientsAtOnce = 16

// Calls counts calls. The zero value is ready to use. It is safe for concurrent use.
type Calls struct {
	mu   sync.Mutex
	held shares
}

// Add counts a call of a token, unless the limit of the token or of all tokens is reached. Zero
// means no limit.
func (r *Calls) Add(token string, limit int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case limit > 0 && r.held.of[token] >= limit:
		return fmt.Errorf("%d calls with this token are running (serve.maxCalls); wait for one of them to end", limit)
	case limit > 0 && r.held.all >= limit*clientsAtOnce:
		return fmt.Errorf("%d calls of all clients are running (%d times serve.maxCalls); wait for one of them to end",
			r.held.all, clientsAtOnce)
	}
	r.held.Add(token)
	return nil
}

// Remove counts one call less for a token.
func (r *Calls) Remove(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held.Remove(token)
}

// Counts returns the number of calls of each token.
func (r *Calls) Counts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.held.of)
}

// Connections counts the connections on which clients without sessions (revision 2026-07-28) have
// sent a request. It is safe for concurrent use; the zero value is ready to use.
type Connections struct {
	mu   sync.Mutex
	open map[net.Conn]*connection
	held shares
}

type connection struct {
	conn    net.Conn
	counted bool
	token   string    // name of the token of its first request
	idle    time.Time // since when it has had no request; zero if it has one
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

// Admit counts the connection of a request, and reports whether its token may have that many
// connections. most is the limit for all tokens. If it is reached, the connection that has been
// idle for longest makes room, one of this token if the token has used up its own share. It is
// returned to be closed, or nil if there is none.
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
