package rpc

import (
	"bytes"
	"context"
	"io"
	"sync"
)

// maxWaiting is how many bytes may be queued for a host that reads slowly.
const maxWaiting = 8 << 20

// outbox writes lines to the host in order, several at once if they are queued. A host that does
// not read delays answers and output, but no server. Create it with [newOutbox].
type outbox struct {
	mu      sync.Mutex
	changed *sync.Cond
	lines   [][]byte
	waiting int // bytes of lines, and of those that are being written
	closed  bool
}

// newOutbox returns an outbox that writes to w until it is closed.
func newOutbox(w io.Writer) *outbox {
	o := &outbox{}
	o.changed = sync.NewCond(&o.mu)
	go o.write(w)
	return o
}

func (o *outbox) write(w io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.lines) == 0 && !o.closed {
			o.changed.Wait()
		}
		if o.closed {
			return
		}
		data, n := bytes.Join(o.lines, nil), o.waiting
		o.lines = nil
		o.mu.Unlock()
		_, err := w.Write(data) // the writer reports its errors
		o.mu.Lock()
		o.waiting -= n
		o.closed = o.closed || err != nil
		o.changed.Broadcast()
	}
}

// send adds a line. While too many bytes are queued, it waits, unless the outbox is closed.
func (o *outbox) send(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wait()
	o.add(line)
}

// room waits while too many bytes are queued, unless the outbox is closed.
func (o *outbox) room() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wait()
}

func (o *outbox) wait() {
	for o.waiting > maxWaiting && !o.closed {
		o.changed.Wait()
	}
}

// post is like send, but drops the line instead of waiting.
func (o *outbox) post(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting <= maxWaiting {
		o.add(line)
	}
}

func (o *outbox) add(line []byte) {
	if o.closed {
		return
	}
	o.lines = append(o.lines, line)
	o.waiting += len(line)
	o.changed.Broadcast()
}

// flush waits until everything is written or the outbox is closed.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.waiting > 0 && !o.closed {
		o.changed.Wait()
	}
}

// close drops lines that were not written and ends all waiting. A write that waits for the host
// continues.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.changed.Broadcast()
}

// line orders requests by arrival. A request that need not wait for earlier ones leaves it. The
// zero value is empty.
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

// join takes the last place.
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
