package serve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/registry"
)

const (
	// waitLimit is how long a call waits for the client to come back with an answer.
	waitLimit = 10 * time.Minute
	// maxWaiting is how many calls of all clients may wait for answers.
	maxWaiting = 1000
	// The keys of our questions in the result of a call: about the call itself, and
	// those that a server asks by a request of its own.
	approvalKey = "toolreg.approval"
	questionKey = "toolreg.question"
)

// waitingCall is a call of a modern client. Such a client is asked by the result
// of its request, which it then sends again with the answer (revision 2026-07-28,
// multi round-trip requests), while the call waits here.
type waitingCall struct {
	owner     string // the name of the client's token
	tool      string
	params    [sha256.Size]byte
	questions chan question
	done      chan outcome
	cancel    context.CancelCauseFunc
	asked     question // that is before the client
	expiry    *time.Timer
}

type question struct {
	requests mcp.InputRequestMap
	answer   chan<- mcp.InputResponseMap
}

type outcome struct {
	result registry.Result
	err    error
}

var (
	errNoAnswer  = errors.New("the client did not come back with an answer")
	errBrokenOff = errors.New("the client broke off its request")
)

// ask waits until the client has come back with an answer.
func (w *waitingCall) ask(ctx context.Context, requests mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	answer := make(chan mcp.InputResponseMap, 1)
	select {
	case w.questions <- question{requests, answer}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case r := <-answer:
		return r, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// start makes a call that outlives the request.
func (s *Server) start(ctx context.Context, c *client, tool string, params []byte, run func(context.Context) (registry.Result, error)) *waitingCall {
	callCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	w := &waitingCall{owner: c.name, tool: tool, params: sha256.Sum256(params), questions: make(chan question), done: make(chan outcome, 1), cancel: cancel}
	c.call = w
	go func() {
		defer cancel(nil)
		r, err := run(callCtx)
		w.done <- outcome{r, err}
	}()
	return w
}

// next waits for the end of a call, or for its next question, of which it returns
// the result that asks the client.
func (s *Server) next(ctx context.Context, w *waitingCall) (registry.Result, *mcp.CallToolResult, error) {
	select {
	case o := <-w.done:
		return o.result, nil, o.err
	case w.asked = <-w.questions:
	case <-ctx.Done():
		w.cancel(errBrokenOff)
		o := <-w.done
		return o.result, nil, o.err
	}
	asks, err := s.park(w)
	if err != nil {
		w.cancel(err)
		<-w.done
	}
	return registry.Result{}, asks, err
}

// park keeps a call until its client comes back, and returns the result that asks
// the client.
func (s *Server) park(w *waitingCall) (*mcp.CallToolResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) >= maxWaiting {
		return nil, errors.New("too many calls wait for answers of their users; try again later")
	}
	state := rand.Text()
	s.waiting[state] = w
	w.expiry = time.AfterFunc(waitLimit, func() {
		if s.unpark(state) != nil {
			w.cancel(errNoAnswer)
		}
	})
	return &mcp.CallToolResult{InputRequests: w.asked.requests, RequestState: state}, nil
}

// unpark returns the call of a state, once.
func (s *Server) unpark(state string) *waitingCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiting[state]
	if w != nil {
		w.expiry.Stop()
		delete(s.waiting, state)
	}
	return w
}

// resume gives a waiting call what a client came back with. It returns the result
// that asks again where answers are missing. The error is one of the protocol: the
// state is not one of ours.
func (s *Server) resume(c *client, call *mcp.CallToolParamsRaw) (*waitingCall, *mcp.CallToolResult, error) {
	w := s.unpark(call.RequestState)
	params := sha256.Sum256(call.Arguments)
	switch {
	case w == nil:
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState: no call waits for it here; it has ended, or another replica has it. Call the tool again without it"}
	case w.owner != c.name || w.tool != call.Name || w.params != params:
		w.cancel(errNoAnswer)
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState: it belongs to another call"}
	}
	for key := range w.asked.requests {
		if call.InputResponses[key] == nil {
			asks, err := s.park(w)
			return nil, asks, err
		}
	}
	w.asked.answer <- call.InputResponses
	return w, nil, nil
}
