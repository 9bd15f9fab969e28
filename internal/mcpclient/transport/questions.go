package transport

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
)

const (
	// MaxServerRequests is how many requests of a server may wait for our answer.
	// More are refused, so that nobody waits for them.
	MaxServerRequests = 16
	// maxRefusals is how many refusals may wait to be written; requests beyond
	// are dropped.
	maxRefusals = 256
	// replyTime is the limit on writing an answer to a server that may not read.
	replyTime = time.Second
	// codeBusy is our code for a request that may be made again later.
	codeBusy = -32000
)

// questions are the requests of the server.
type questions struct {
	waiting     int // without an answer yet, those that the SDK answers included
	refusing    int // of those beyond, whose refusal is being written
	running     map[jsonrpc.ID]context.CancelCauseFunc
	completions map[string]chan struct{} // by the id of the elicitation
}

// The causes with which the context of a question ends.
var (
	ErrRequestOver = errors.New("the request during which the server asked is over")
	ErrWithdrawn   = errors.New("the server withdrew its question")
	errClosed      = errors.New("it was closed")
)

// admit counts a request of the server in and reports whether it may be
// answered.
func (c *Conn) admit() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.questions.waiting >= MaxServerRequests {
		return false
	}
	c.questions.waiting++
	return true
}

// during returns the request of ours during which the server may ask, the one
// that runs longest where there are several, nil where there is none. c.mu is
// held.
func (c *Conn) during() *ask.Request {
	var oldest *pending
	for _, p := range c.requests.pending {
		if p.exchange != nil && p.exchange.request != nil && (oldest == nil || p.serial < oldest.serial) {
			oldest = p
		}
	}
	if oldest == nil {
		return nil
	}
	return oldest.exchange.request
}

// endQuestions ends the questions that nobody waits for any more. c.mu is held.
func (c *Conn) endQuestions() {
	if len(c.questions.running) == 0 || c.during() != nil {
		return
	}
	for _, cancel := range c.questions.running {
		cancel(ErrRequestOver)
	}
}

// question answers a request of the server beside the reading. The protocol does
// not say which request of ours a question is about; the one that runs longest
// stands for it.
func (c *Conn) question(ctx context.Context, r *jsonrpc.Request) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.questions.running[r.ID]; twice || c.waited {
		c.questions.waiting--
		cancel(nil)
		return
	}
	c.questions.running[r.ID] = cancel
	during := c.during()
	over := make(chan struct{})
	c.spawnLocked(func() {
		select {
		case <-c.done.c:
		case <-c.eof:
		case <-over:
		}
		cancel(errClosed)
	})
	c.spawnLocked(func() {
		defer close(over)
		result, err := c.opts.Answer(ctx, during, r.Method, r.Params)
		withdrawn := errors.Is(context.Cause(ctx), ErrWithdrawn)
		c.mu.Lock()
		delete(c.questions.running, r.ID)
		c.questions.waiting--
		c.mu.Unlock()
		if !withdrawn { // a request that was withdrawn wants no answer
			c.reply(ctx, &jsonrpc.Response{ID: r.ID, Result: result, Error: err})
		}
	})
}

// refuse refuses a request that there is no room for.
func (c *Conn) refuse(ctx context.Context, r *jsonrpc.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.questions.refusing >= maxRefusals {
		return
	}
	c.questions.refusing++
	c.spawnLocked(func() {
		c.reply(ctx, &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: codeBusy, Message: "too many requests at once"}})
		c.mu.Lock()
		defer c.mu.Unlock()
		c.questions.refusing--
	})
}

func (c *Conn) reply(ctx context.Context, r *jsonrpc.Response) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTime)
	defer cancel()
	if r.Error != nil {
		r.Result = nil
	}
	c.trace("to server", r)
	if err := c.inner.Write(ctx, r); err != nil {
		c.opts.Logger.Debug("an answer was not delivered", "error", err)
	}
}

// withdraw ends a question that the server cancels, and reports whether it is
// one of those that run.
func (c *Conn) withdraw(params json.RawMessage) bool {
	id := messageID(jsonx.Get(params, "requestId"))
	c.mu.Lock()
	defer c.mu.Unlock()
	cancel, ok := c.questions.running[id]
	if ok {
		cancel(ErrWithdrawn)
	}
	return ok
}

// Completion is an [ask.Completion]: the server says by
// notifications/elicitation/complete that what an address was opened for is done.
func (c *Conn) Completion(elicitationID string) (<-chan struct{}, func()) {
	done := make(chan struct{})
	if elicitationID == "" {
		return done, func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.questions.completions[elicitationID] = done
	return done, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.questions.completions[elicitationID] == done {
			delete(c.questions.completions, elicitationID)
		}
	}
}

func (c *Conn) completed(params json.RawMessage) {
	id, _ := jsonx.Text(jsonx.Get(params, "elicitationId"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if done, ok := c.questions.completions[id]; ok {
		close(done)
		delete(c.questions.completions, id)
	}
}
