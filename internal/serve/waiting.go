package serve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// waitLimit is how long a call waits for the client's answer.
	waitLimit = 10 * time.Minute
	// maxWaiting is how many calls of all clients may wait for answers.
	maxWaiting = 1000
	// The keys of our questions in the result of a call: about the call itself,
	// and for those that a server asks by its own request.
	approvalKey = "toolreg.approval"
	questionKey = "toolreg.question"
)

// turn is one request of a client, which may be the continuation of a waiting
// one.
type turn struct {
	method, name string
	params       []byte // the part that is the same when it is sent again
	state        string
	answers      mcp.InputResponseMap
}

// asks is what a client is asked in the result of its request.
type asks struct {
	requests mcp.InputRequestMap
	state    string
}

// waitingCall is a call of a modern client. Such a client is asked in the
// result of its request, which it then sends again with the answer (revision
// 2026-07-28, multi round-trip requests), while the call waits here.
type waitingCall struct {
	owner     string // name of the client's token
	turn      [sha256.Size]byte
	questions chan question
	done      chan outcome
	cancel    context.CancelCauseFunc
	asked     question // the question that the client was asked
	expiry    *time.Timer
}

type question struct {
	requests mcp.InputRequestMap
	answer   chan<- mcp.InputResponseMap
}

type outcome struct {
	value any
	err   error
}

var (
	errNoAnswer  = errors.New("the client did not come back with an answer")
	errBrokenOff = errors.New("the client broke off its request")
)

// ask waits for the client's answer.
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

// digest is the same for a request and for its repetition with answers.
func (t *turn) digest() [sha256.Size]byte {
	return sha256.Sum256(slices.Concat([]byte(t.method+"\x00"+t.name+"\x00"), t.params))
}

// make handles a request of a client, or continues one that waits for the
// client's answers; run does the work. It returns the result of run, or what to
// ask the client first.
func (s *Server) make(ctx context.Context, t turn, run func(context.Context) (any, error)) (any, *asks, error) {
	c := clientFrom(ctx)
	if !c.modern {
		v, err := run(outgoing{ctx})
		return v, nil, err
	}
	if t.state != "" {
		w, again, err := s.resume(c, t)
		if w == nil {
			return nil, again, err
		}
		return s.next(ctx, w)
	}
	callCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	w := &waitingCall{owner: c.name, turn: t.digest(), questions: make(chan question), done: make(chan outcome, 1), cancel: cancel}
	c.call = w
	go func() {
		defer cancel(nil)
		v, err := run(outgoing{callCtx})
		w.done <- outcome{v, err}
	}()
	return s.next(ctx, w)
}

// next waits for the end of a call, or for its next question.
func (s *Server) next(ctx context.Context, w *waitingCall) (any, *asks, error) {
	select {
	case o := <-w.done:
		return o.value, nil, o.err
	case w.asked = <-w.questions:
	case <-ctx.Done():
		w.cancel(errBrokenOff)
		o := <-w.done
		return o.value, nil, o.err
	}
	a, err := s.park(w)
	if err != nil {
		w.cancel(err)
		<-w.done
	}
	return nil, a, err
}

// park stores a call until its client comes back, and returns what to ask the
// client.
func (s *Server) park(w *waitingCall) (*asks, error) {
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
	return &asks{w.asked.requests, state}, nil
}

// unpark returns the call of a state once.
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

// resume passes a client's answers to a waiting call. If answers are missing,
// it returns what to ask again. The error is a protocol error: the state is not
// one of ours.
func (s *Server) resume(c *client, t turn) (*waitingCall, *asks, error) {
	w := s.unpark(t.state)
	switch {
	case w == nil:
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState: no call waits for it here; it has ended, or another replica has it. Call the tool again without it"}
	case w.owner != c.name || w.turn != t.digest():
		w.cancel(errNoAnswer)
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState: it belongs to another call"}
	}
	for key := range w.asked.requests {
		if t.answers[key] == nil {
			a, err := s.park(w)
			return nil, a, err
		}
	}
	w.asked.answer <- t.answers
	return w, nil, nil
}
