package wire

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/text"
)

const (
	// replyTime limits the time for writing an answer to a server that may not be
	// reading.
	replyTime = 5 * time.Second
	// codeBusy is our error code for a request that the server may repeat
	// later.
	codeBusy = -32000
)

// question answers a request from the server while reading goes on. The protocol does not say
// which of our requests it is about, so it is attributed to the longest-running one. ctx may
// belong to any request, so its values about the calling client are not passed on.
func (s *Session) question(ctx context.Context, r *jsonrpc.Request) {
	ctx, cancel := context.WithCancelCause(caller.With(context.WithoutCancel(ctx), nil))
	during, err := s.table.ask(r.ID, cancel)
	if err != nil {
		if err == errBusy {
			s.refuse(ctx, r)
		}
		cancel(nil)
		return
	}
	s.spawn(func() {
		defer cancel(nil)
		result, err := s.respond(ctx, during, r)
		withdrawn := errors.Is(context.Cause(ctx), ErrWithdrawn)
		s.table.asked(r.ID)
		if !withdrawn { // a withdrawn request gets no answer
			s.reply(ctx, &jsonrpc.Response{ID: r.ID, Result: result, Error: err})
		}
	})
}

// respond returns the answer to a request from the server.
func (s *Session) respond(ctx context.Context, during *ask.Request, r *jsonrpc.Request) (json.RawMessage, error) {
	switch {
	case r.Method == "ping":
		return json.RawMessage("{}"), nil
	case ask.IsQuestion(r.Method):
		return s.opts.Answer(ctx, during, r.Method, r.Params)
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "not a request that clients answer: " + text.Quote(r.Method)}
}

// refuse refuses a request beyond the limit.
func (s *Session) refuse(ctx context.Context, r *jsonrpc.Request) {
	if !s.table.refuse() {
		return
	}
	s.spawn(func() {
		defer s.table.refused()
		s.reply(ctx, &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: codeBusy, Message: errBusy.Error()}})
	})
}

func (s *Session) reply(ctx context.Context, r *jsonrpc.Response) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTime)
	defer cancel()
	if r.Error != nil {
		r.Result = nil
	}
	if err := s.send(ctx, message{Message: r, revision: s.Revision()}); err != nil {
		s.opts.Logger.Debug("an answer was not delivered", "error", err)
	}
}

// Completion is an [ask.Completion]: the server reports with
// notifications/elicitation/complete that the user has finished at a URL.
func (s *Session) Completion(elicitationID string) (<-chan struct{}, func()) {
	return s.completions.await(elicitationID)
}

// completions are what users do at URLs until the server reports that they have finished.
// The zero value has none. It is safe for concurrent use.
type completions struct {
	mu   sync.Mutex
	byID map[string]chan struct{} // by the id of the elicitation
}

// await returns what is closed when the server reports an elicitation. The caller calls the
// function when it no longer waits.
func (c *completions) await(id string) (<-chan struct{}, func()) {
	done := make(chan struct{})
	if id == "" {
		return done, func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[string]chan struct{}{}
	}
	c.byID[id] = done
	return done, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.byID[id] == done {
			delete(c.byID, id)
		}
	}
}

// report ends the elicitation with an id.
func (c *completions) report(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if done, ok := c.byID[id]; ok {
		close(done)
		delete(c.byID, id)
	}
}
