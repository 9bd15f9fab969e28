package question

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// outboxSize is how many notifications may wait for a client that reads slowly.
const outboxSize = 256

// outbox sends a client the notifications that belong to its request, in order. Adding
// one never blocks, because it is done while reading from a server that other clients
// also use.
type outbox struct {
	Session  *mcp.ServerSession
	Request  context.Context // notifications sent with it belong to the request
	progress any             // the progress token of the request; nil if it did not ask for progress

	mu      sync.Mutex
	queue   chan func()
	closed  bool
	sending sync.WaitGroup
}

// post queues a function that sends a notification. It is dropped if the request has ended
// or the client reads too slowly: notifications may be lost.
func (o *outbox) post(send func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if o.queue == nil {
		queue := make(chan func(), outboxSize)
		o.queue = queue
		o.sending.Go(func() {
			for send := range queue {
				send()
			}
		})
	}
	select {
	case o.queue <- send:
	default:
	}
}

// close waits until everything is sent, so that it arrives before the result.
func (o *outbox) close() {
	o.mu.Lock()
	if !o.closed && o.queue != nil {
		close(o.queue)
	}
	o.closed = true
	o.mu.Unlock()
	o.sending.Wait()
}
