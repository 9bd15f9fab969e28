package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
)

// receiveAll reads until the connection ends, even after Close: a server that
// blocks on its stdout would not notice that its stdin was closed.
func (c *Conn) receiveAll(ctx context.Context) {
	for {
		m, err := c.inner.Read(ctx)
		var bad *badMessageError
		if errors.As(err, &bad) {
			m, err = c.answerFor(bad), nil
		}
		if err != nil {
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
			close(c.eof)
			return
		}
		c.receive(ctx, m)
	}
}

// receive processes one message, from any stream.
func (c *Conn) receive(ctx context.Context, m jsonrpc.Message) {
	c.trace("from server", m)
	c.receiving.Lock()
	m = c.incoming(ctx, m)
	c.receiving.Unlock()
	if m != nil {
		c.deliver(m)
	}
}

func (c *Conn) deliver(m jsonrpc.Message) {
	select {
	case c.in <- m:
	case <-c.done.c:
	case <-c.eof:
	}
}

// inject gives the SDK an answer of our own, from within its Write.
func (c *Conn) inject(r *jsonrpc.Response) {
	c.spawn(func() { c.deliver(r) })
}

// incoming returns the message that the SDK receives in place of m, nil if it receives
// none.
func (c *Conn) incoming(ctx context.Context, m jsonrpc.Message) jsonrpc.Message {
	switch m := m.(type) {
	case *jsonrpc.Response:
		if m = c.meant(m); c.response(m) {
			return m
		}
	case *jsonrpc.Request:
		switch {
		case m.IsCall() && !c.admit():
			c.refuse(ctx, m)
		case m.IsCall() && ask.IsQuestion(m.Method):
			c.question(ctx, m)
		case m.IsCall():
			return m
		case m.Method == "notifications/cancelled" && !c.withdraw(m.Params):
			return m
		default:
			c.notification(m)
		}
	}
	return nil
}

func (c *Conn) response(r *jsonrpc.Response) bool {
	c.mu.Lock()
	p := c.requests.pending[r.ID]
	delete(c.requests.pending, r.ID)
	c.endQuestions()
	if p == nil && c.requests.unexpected == "" && !c.requests.made(r.ID) {
		c.requests.unexpected = fmt.Sprint(r.ID.Raw())
	}
	if r.ID.Raw() == logLevelID {
		c.logs.give()
	}
	c.mu.Unlock()
	if p == nil {
		c.opts.Logger.Debug("answer without a request dropped", "id", r.ID.Raw())
		return false
	}
	c.check(r)
	if p.method == "initialize" || p.method == "server/discover" {
		c.handshakeAnswer(r.ID, r)
		return false
	}
	if p.exchange != nil {
		c.capture(p.exchange, p.method, r)
	}
	return true
}

// meant returns an answer with the id of the request that it is for: some servers return a
// number as a string. The SDK may still read r.
func (c *Conn) meant(r *jsonrpc.Response) *jsonrpc.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := r.ID.Raw().(string)
	if !ok || c.requests.pending[r.ID] != nil {
		return r
	}
	n, err := strconv.ParseUint(s, 10, 53)
	id, _ := jsonrpc.MakeID(float64(n))
	if err != nil || c.requests.pending[id] == nil {
		return r
	}
	out := *r
	out.ID = id
	return &out
}

// made reports whether a request with that id was ever sent, even if it is no longer
// pending.
func (r *requests) made(id jsonrpc.ID) bool {
	switch id := id.Raw().(type) {
	case int64:
		return id > 0 && id <= r.issued
	case string:
		return id == logLevelID || id == initializeID || id == listenID
	}
	return false
}

// check turns an invalid answer into an error.
func (c *Conn) check(r *jsonrpc.Response) {
	if r.Error != nil {
		r.Result = nil
		return
	}
	r.Result = bytes.TrimSpace(r.Result)
	// Lines of stdio are valid JSON already.
	if c.opts.HTTP != nil && !jsonx.Valid(r.Result) {
		r.Result = nil
	}
	if len(r.Result) == 0 {
		r.Error = malformed("the answer has neither a result nor an error")
	}
}

// answerFor turns a malformed message into an error answer if it is clear which request
// it was meant to answer, so that the request does not wait for its time limit.
func (c *Conn) answerFor(bad *badMessageError) jsonrpc.Message {
	c.opts.Logger.Warn("malformed message from the server", "error", bad.Error())
	c.mu.Lock()
	defer c.mu.Unlock()
	id := bad.id
	if !id.IsValid() && bad.answer && len(c.requests.pending) == 1 {
		for only := range c.requests.pending {
			id = only
		}
	}
	if !id.IsValid() {
		return nil
	}
	return &jsonrpc.Response{ID: id, Error: malformed(bad.Error())}
}

func malformed(what string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: what}
}
