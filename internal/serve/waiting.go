package serve

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/transport"
)

const (
	// maxWaiting is how many calls of all clients may wait for answers, and
	// maxWaitingOwn how many of one token.
	maxWaiting    = 1000
	maxWaitingOwn = 500
	// The keys of toolreg's own questions in the result of a call: about the call itself,
	// and for questions that a server sends as a request.
	approvalKey = "toolreg.approval"
	questionKey = "toolreg.question"
)

// turn is one request of a client, which may be the continuation of a waiting
// one.
type turn struct {
	method, name string
	params       []byte // the part that is the same when it is sent again
	progress     any    // the client's token for progress
	state        string
	answers      mcp.InputResponseMap
}

// asks are the questions in the result of a client's request.
type asks struct {
	requests mcp.InputRequestMap
	state    string
}

// waitingCall is a call of a modern client. The client receives questions in the result of
// its request and repeats the request with the answers (revision 2026-07-28, multi
// round-trip requests), while the call waits here.
type waitingCall struct {
	owner     string // see [auth.Identity.Account]
	request   requestDigest
	questions chan question
	done      chan outcome
	cancel    context.CancelCauseFunc
	asked     question // the question that the client was asked
	since     time.Time
	expiry    *time.Timer
	carrier   atomic.Pointer[client] // sender of the request that carries the call now

	// The goroutine that runs the call uses these.
	tool     *registry.Tool                // that is called; nil for other requests
	server   string                        // that provides the result; "" if there are several or none
	given    *given                        // what the client answered another process; nil: nothing
	approval *callApproval                 // of the call
	rounds   int                           // how often the server has asked
	task     chan struct{}                 // closed when the call goes on as a task
	isTask   sync.Once                     // closes task
	failed   atomic.Pointer[jsonrpc.Error] // by which the task has failed
	stays    bool                          // a question was answered at the console, so only this process can continue it
}

type question struct {
	requests mcp.InputRequestMap
	stage    *callStage // nil: the call can only continue here
	answer   chan<- mcp.InputResponseMap
	settled  *settlement // with the console; nil: only the client is asked
}

type outcome struct {
	value any
	err   error
}

var (
	errNoAnswer  = errors.New("the client sent no answer")
	errBrokenOff = errors.New("the client canceled its request")
	errTooMany   = errors.New("too many calls are waiting for answers; try again later")
)

// ask waits for the client's answer.
func (w *waitingCall) ask(ctx context.Context, requests mcp.InputRequestMap, stage *callStage) (mcp.InputResponseMap, error) {
	answer := make(chan mcp.InputResponseMap, 1)
	settled, _ := ctx.Value(settlementKey{}).(*settlement)
	select {
	case w.questions <- question{requests, stage, answer, settled}:
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

// digest returns the same value for a request and for its repetition with answers, even
// if the client encodes it differently.
func (t *turn) digest() requestDigest {
	return digestOf(t.method, t.name, jsonx.Canonical(t.params))
}

// make handles a request of a client, or continues a call that waits for the client's
// answers; run does the work. It returns the result of run, or what to ask the client
// first, or the *waitingCall if it goes on as a task.
func (s *states) make(ctx context.Context, t turn, run func(context.Context) (any, error)) (any, *asks, error) {
	c := clientFrom(ctx)
	c.progress = t.progress
	if !c.modern {
		v, err := run(ctx)
		return v, nil, err
	}
	if t.state == "" {
		return s.next(ctx, s.start(ctx, t, nil, run))
	}
	w, again, err := s.resume(ctx, t, run)
	if w == nil {
		return nil, again, err
	}
	return s.next(ctx, w)
}

// start runs a request. given holds the client's answers to another process; nil for a
// new request.
func (s *states) start(ctx context.Context, t turn, given *given, run func(context.Context) (any, error)) *waitingCall {
	c := clientFrom(ctx)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	w := &waitingCall{owner: c.from.Account(), request: t.digest(), questions: make(chan question), done: make(chan outcome, 1), cancel: cancel, given: given, task: make(chan struct{})}
	c.call = w
	w.carrier.Store(c)
	go func() {
		defer cancel(nil)
		v, err := run(ctx)
		w.done <- outcome{v, err}
	}()
	return w
}

// next waits for the end of a call, or for its next question.
func (s *states) next(ctx context.Context, w *waitingCall) (any, *asks, error) {
	select {
	case o := <-w.done:
		return o.value, nil, o.err
	case w.asked = <-w.questions:
	case <-w.task:
		return w, nil, nil
	case <-ctx.Done():
		w.cancel(errBrokenOff)
		o := <-w.done
		return o.value, nil, o.err
	}
	a, err := s.park(ctx, w)
	if errors.Is(err, errSettled) {
		return s.next(ctx, w)
	}
	if stage := w.asked.stage; err != nil && stage != nil && stage.Server == nil {
		err = &exec.Denied{Tool: w.tool.Name, Reason: "it needs an answer, and " + err.Error(), Later: true}
	}
	if err != nil {
		w.cancel(err)
		<-w.done
	}
	return nil, a, err
}

// Wait ends the calls that wait for answers, because no more can arrive, and waits until
// the replaced sessions are closed.
func (s *Server) Wait() {
	for _, w := range s.states.endAll() {
		<-w.done
	}
	for _, task := range s.tasks.endOf(func(auth.Identity) bool { return true }, transport.ErrStopped) {
		<-task.over
	}
	s.closing.Wait()
}
