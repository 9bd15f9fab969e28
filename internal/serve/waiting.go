package serve

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/registry"
)

const (
	// waitLimit is how long a call waits for the client to come back with an answer.
	waitLimit = 10 * time.Minute
	// maxWaiting is how many calls of all clients may wait for answers.
	maxWaiting = 1000
	// inputKey is the key of our question in the result of a call.
	inputKey = "question"
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
	params *mcp.ElicitParams
	answer chan<- *mcp.ElicitResult
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
func (w *waitingCall) ask(ctx context.Context, q *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	answer := make(chan *mcp.ElicitResult, 1)
	select {
	case w.questions <- question{q, answer}:
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
	state, err := s.park(w)
	if err != nil {
		w.cancel(err)
		<-w.done
		return registry.Result{}, nil, err
	}
	return registry.Result{}, &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{inputKey: w.asked.params}, RequestState: state}, nil
}

// park keeps a call until its client comes back, and returns the state that names
// it.
func (s *Server) park(w *waitingCall) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) >= maxWaiting {
		return "", errors.New("too many calls wait for answers of their users; try again later")
	}
	state := rand.Text()
	s.waiting[state] = w
	w.expiry = time.AfterFunc(waitLimit, func() {
		if s.unpark(state) != nil {
			w.cancel(errNoAnswer)
		}
	})
	return state, nil
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

// resume gives a waiting call the answer that a client came back with.
func (s *Server) resume(c *client, call *mcp.CallToolParamsRaw) (*waitingCall, error) {
	w := s.unpark(call.RequestState)
	params := sha256.Sum256(call.Arguments)
	switch {
	case w == nil:
		return nil, fmt.Errorf("the call that this answer belongs to is not waiting here: it has ended, or another replica has it. Call the tool again")
	case w.owner != c.name || w.tool != call.Name || !bytes.Equal(w.params[:], params[:]):
		w.cancel(errNoAnswer)
		return nil, errors.New("the answer does not belong to this call. Call the tool again")
	}
	answer, ok := call.InputResponses[inputKey].(*mcp.ElicitResult)
	if !ok {
		answer = &mcp.ElicitResult{Action: "cancel"}
	}
	w.asked.answer <- answer
	return w, nil
}
