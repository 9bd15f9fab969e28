package rpc

import (
	"context"
	"sync"
)

// line puts requests in order of arrival. A request that need not wait for earlier ones
// leaves it. The zero value is empty.
type line struct {
	mu    sync.Mutex
	queue []*place
	// While the turn is lent, requests that arrive join another line, because the one whose turn
	// it is waits for them.
	lent  int
	other *line
}

// place is the place of a request in a line. A nil place has its turn at once.
type place struct {
	line *line
	turn chan struct{} // closed when all that were before have left
	left bool
}

// Join takes the last place.
func (l *line) join() *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lent > 0 {
		return l.other.join()
	}
	p := &place{line: l, turn: make(chan struct{})}
	l.queue = append(l.queue, p)
	if len(l.queue) == 1 {
		close(p.turn)
	}
	return p
}

// Wait waits until all requests that arrived earlier have left, or until ctx is done.
func (p *place) Wait(ctx context.Context) error {
	if p == nil {
		return nil
	}
	select {
	case <-p.turn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lend lets requests that arrive from now on, until the returned function is called, pass those
// that are in the line.
func (p *place) lend() (back func()) {
	if p == nil {
		return func() {}
	}
	l := p.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lent == 0 {
		l.other = &line{}
	}
	l.lent++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lent--
	}
}

// Leave gives up the place. It may be called more than once.
func (p *place) Leave() {
	if p == nil {
		return
	}
	l := p.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.left {
		return
	}
	p.left = true
	first := l.queue[0]
	for len(l.queue) > 0 && l.queue[0].left {
		l.queue = l.queue[1:]
	}
	if len(l.queue) > 0 && l.queue[0] != first {
		close(l.queue[0].turn)
	}
}
