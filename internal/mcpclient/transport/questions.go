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
	// MaxServerRequests is how many requests from a server may await our answer. Further
	// ones are refused at once.
	MaxServerRequests = 16
	// maxRefusals is how many refusals may wait to be written; further requests are
	// dropped.
	maxRefusals = 256
	// replyTime limits the time for writing an answer to a server that may not be
	// reading.
	replyTime = time.Second
	// codeBusy is our error code for a request that may be repeated later.
	codeBusy = -32000
)

// questions holds the server's requests.
type questions struct {
	waiting     int // still unanswered, including those that the SDK answers
	refusing    int // excess requests whose refusal is being written
	running     map[jsonrpc.ID]context.CancelCauseFunc
	completions map[string]chan struct{} // by the id of the elicitation
}

// The causes for which the context of a question ends.
var (
	ErrRequestOver = errors.New("the request during which the server asked is over")
	ErrWithdrawn   = errors.New("the server withdrew its question")
	errClosed      = errors.New("the connection was closed")
)

// admit counts a request from the server and reports whether it may be
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

// during returns the request of ours to which a question from the server is attributed:
// the one that has been running longest, nil if none is running. If requests of several
// clients are running, it returns one that allows no question. c.mu is held.
func (c *Conn) during() *ask.Request {
	var oldest *pending
	var all []*ask.Request
	several := false
	for _, p := range c.requests.pending {
		if p.exchange == nil || p.exchange.request == nil {
			continue
		}
		all = append(all, p.exchange.request)
		if oldest != nil && !p.exchange.request.SameCaller(oldest.exchange.request) {
			several = true
		}
		if oldest == nil || p.serial < oldest.serial {
			oldest = p
		}
	}
	switch {
	case oldest == nil:
		return nil
	case several:
		return ask.Several(all)
	}
	return oldest.exchange.request
}

// endQuestions cancels the open questions if no request of ours is running any more. c.mu
// is held.
func (c *Conn) endQuestions() {
	if len(c.questions.running) == 0 || c.during() != nil {
		return
	}
	for _, cancel := range c.questions.running {
		cancel(ErrRequestOver)
	}
}

// question answers a request from the server while reading goes on. The protocol
// does not say which of our requests a question is about; the longest-running
// one is assumed.
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
		if !withdrawn { // a withdrawn request gets no answer
			c.reply(ctx, &jsonrpc.Response{ID: r.ID, Result: result, Error: err})
		}
	})
}

// refuse refuses a request beyond the limit.
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
	if err := c.inner.Write(oneway(ctx), r); err != nil {
		c.opts.Logger.Debug("an answer was not delivered", "error", err)
	}
}

// withdraw ends a question that the server cancels, and reports whether it was
// running.
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

// Completion is an [ask.Completion]: the server reports with
// notifications/elicitation/complete that the person has finished at an address.
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
