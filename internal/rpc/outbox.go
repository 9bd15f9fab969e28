package rpc

import (
	"bytes"
	"io"
	"sync"
)

// maxWaiting is how many bytes may wait for a host that reads slowly.
const maxWaiting = 8 << 20

// outbox writes lines to the host in order, several at once if they wait. A host that does
// not read holds up answers and output, but no server. Create it with [newOutbox].
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

// Send adds a line. It waits while too many bytes do, unless the outbox is closed.
func (o *outbox) send(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wait()
	o.add(line)
}

// room waits while too many bytes wait, unless the outbox is closed.
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

// Post is like send, but drops the line instead of waiting.
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

// close drops what was not written and lets nothing wait any more. A write that waits for
// the host goes on.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.changed.Broadcast()
}
