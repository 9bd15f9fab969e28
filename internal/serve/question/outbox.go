//lint:file-ignore SA1019 clients still use logging, which a later revision deprecates

package question

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
)

// outboxSize is how many notifications may wait for a client that reads slowly.
const outboxSize = 256

// outbox sends a client the notifications that belong to its request, in order. Adding one never
// blocks, because it is added while reading from a server that other clients use too.
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

// LogTo passes a server's log messages to the client whose call they belong to. Messages that
// belong to no single call go to other.
func LogTo(other func() func(mcpclient.LogMessage)) func() func(mcpclient.LogMessage) {
	return func() func(mcpclient.LogMessage) {
		rest := other()
		return func(m mcpclient.LogMessage) {
			if m.Caller == nil {
				rest(m)
				return
			}
			if c, ok := m.Caller.Peer.(*Client); ok {
				to := c.current()
				to.post(func() {
					_ = to.Session.Log(to.Request,
						&mcp.LoggingMessageParams{Level: mcp.LoggingLevel(m.Level), Logger: m.Logger, Data: m.Text})
				})
			}
		}
	}
}

// Progress returns the function that reports the progress of a request to its client; nil if the
// client does not want it. If the client may be asked a question first, the request with the answer
// may ask for progress too.
func Progress(ctx context.Context) func(registry.Progress) {
	c := From(ctx)
	if c == nil || c.progress == nil && (!c.Modern || c.can.Elicitation == nil && c.can.Sampling == nil) {
		return nil
	}
	return func(p registry.Progress) {
		to := c.current()
		if to.progress == nil {
			return
		}
		to.post(func() {
			_ = to.Session.NotifyProgress(to.Request,
				&mcp.ProgressNotificationParams{ProgressToken: to.progress,
					Progress: p.Done, Total: p.Total, Message: p.Message})
		})
	}
}
