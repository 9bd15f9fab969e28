// Package rpc is the connection between toolreg rpc and its host: JSON-RPC 2.0, one message
// a line, in both directions. A [Server] reads the host's requests, runs the [Method] of
// each, and answers them. [Host.Asker] asks the host what needs a person or a model; [Call]
// tells it what happens meanwhile. The package knows neither flags nor what the methods do:
// internal/cli/rpccmd has them. Every type of a message is a Go type, from which [Messages]
// makes a schema and TypeScript.
package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

const (
	// maxOpen and maxOpenBytes limit the requests that are open at the same time.
	maxOpen      = 10_000
	maxOpenBytes = 256 << 20
	// lastAnswers is how long requests may take after the end of the input.
	lastAnswers = 2 * time.Second
	// maxWorking limits the number of requests in work at the same time, because their results may
	// have to wait for the host.
	maxWorking = 16
	// workTime is how long a request counts as in work. A request that waits for a server or a
	// person must not delay others.
	workTime = 20 * time.Millisecond
)

// Options configure a [Server]. All are required.
type Options struct {
	Methods []Method
	// Initialize is the method that comes first.
	Initialize Method
	// ErrorData describes an error for the host, in a message and as JSON.
	ErrorData func(context.Context, error) (message string, data any)
}

// Server answers the requests of one host. Create it with [New].
type Server struct {
	opts    Options
	methods map[string]*Method
	out     *outbox
	calls   line
	working chan struct{} // has one element for each request in work
	running sync.WaitGroup

	mu        sync.Mutex
	open      map[string]*Request // requests that are not answered, by id
	openBytes int
	ready     bool // initialized
	asked     map[string]chan<- message
	questions int // number of questions so far
}

// New returns a server that writes to w. It sends nothing to the host before [Server.Serve].
func New(w io.Writer, opts Options) *Server {
	s := &Server{
		opts:    opts,
		out:     newOutbox(w),
		working: make(chan struct{}, maxWorking),
		open:    map[string]*Request{},
		asked:   map[string]chan<- message{},
	}
	s.methods = map[string]*Method{opts.Initialize.Name: &s.opts.Initialize}
	for i := range opts.Methods {
		s.methods[opts.Methods[i].Name] = &opts.Methods[i]
	}
	return s
}

// Request is a request of the host that is being answered.
type Request struct {
	ID      json.RawMessage
	Arrived any // what Method.Arrive returned

	server    *Server
	method    *Method
	place     *place
	size      int
	cancel    context.CancelCauseFunc
	over      func()
	rest      func() // says that the request waits for something, so that others may be worked on
	cancelled bool   // the answer is CodeCancelled; server.mu guards it
}

// Wait waits for the turn of a request that changes something: until all that arrived
// before it have left the line.
func (r *Request) Wait(ctx context.Context) error {
	r.rest()
	return r.place.Wait(ctx)
}

// Leave says that the request will change nothing from now on, so that later ones need not wait for
// it.
func (r *Request) Leave() { r.place.Leave() }

var (
	// ErrCancelled is the cause of a context that the host has canceled.
	ErrCancelled = errors.New("the host canceled the request")
	errEnded     = errors.New("the host has ended the input")
)

// Serve answers requests until the end of the input, and then those already read, except that calls
// are canceled. If ctx is done, it returns its cause.
func (s *Server) Serve(ctx context.Context, in io.Reader) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer s.out.close()
	defer context.AfterFunc(ctx, s.out.close)()
	lines := jsonx.NewStream(in, maxLine)
	for {
		line, err := lines.Next()
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		switch {
		case err == nil:
			s.receive(ctx, line)
		case errors.Is(err, jsonx.ErrLongLine):
			s.refuse(null, invalid("the line is longer than the limit of %d bytes", maxLine))
		case errors.Is(err, io.EOF):
			s.end(stop)
			return nil
		default:
			return fmt.Errorf("reading stdin: %w", err)
		}
	}
}

// end answers the open requests after the end of the input.
func (s *Server) end(stop context.CancelCauseFunc) {
	s.mu.Lock()
	for _, r := range s.open {
		if r.method.Calls {
			r.cancelled = true
			r.cancel(errEnded)
		}
	}
	for id, answer := range s.asked {
		close(answer)
		delete(s.asked, id)
	}
	s.mu.Unlock()
	over := make(chan struct{})
	go func() {
		s.running.Wait()
		s.out.flush()
		close(over)
	}()
	select {
	case <-over:
		return
	case <-time.After(lastAnswers):
	}
	s.mu.Lock()
	left := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	for _, r := range left {
		if s.settle(r) {
			s.out.post(encodeAnswer(answer{ID: r.ID, Error: cancelledError()}))
		}
	}
	stop(errEnded)
	flushed := time.AfterFunc(100*time.Millisecond, s.out.close)
	defer flushed.Stop()
	s.out.flush()
}

func cancelledError() *Error { return &Error{Code: CodeCancelled, Message: "the request was canceled"} }

// receive handles one line. It returns once the request has its place among the others.
func (s *Server) receive(ctx context.Context, line []byte) {
	m, wrong := parse(line)
	switch {
	case wrong != nil:
		s.refuse(m.id, wrong)
		return
	case m.method == nil:
		s.answered(m)
		return
	case m.id == nil:
		// Only the notification cancel has an effect: nobody would learn the result of another one.
		if name, _ := jsonx.Text(m.method); name == cancelMethod {
			_, _ = s.cancelled(m.params)
		}
		return
	}
	name, ok := jsonx.Text(m.method)
	method := s.methods[name]
	s.mu.Lock()
	switch first := method == &s.opts.Initialize; {
	case !ok:
		wrong = invalid("the method must be a string")
	case s.open[string(m.id)] != nil:
		wrong = invalid("the id %s is that of a request that is not answered yet", text.Head(string(m.id), 100))
	case first && s.ready:
		wrong = invalid("the connection is initialized already")
	case !first && !s.ready:
		wrong = invalid(`the first request must be "initialize", and be answered`)
	case method == nil && name != cancelMethod:
		wrong = &Error{Code: CodeUnknownMethod, Message: fmt.Sprintf("there is no method %s", text.Quote(name))}
	case len(s.open) >= maxOpen || s.openBytes+len(line) > maxOpenBytes:
		wrong = &Error{Code: CodeFailed,
			Message: fmt.Sprintf("too many requests are open: at most %d, of %d bytes together", maxOpen, maxOpenBytes)}
	}
	if wrong != nil || name == cancelMethod {
		s.mu.Unlock()
		if wrong == nil {
			s.cancel(m)
		} else {
			s.refuse(m.id, wrong)
		}
		return
	}
	r := &Request{ID: m.id, server: s, method: method, size: len(line)}
	s.open[string(m.id)] = r
	s.openBytes += r.size
	if method.Calls {
		r.place = s.calls.join()
	}
	ctx, r.cancel = context.WithCancelCause(ctx)
	s.mu.Unlock()
	r.over = func() {}
	if method.Arrive != nil {
		r.Arrived, r.over = method.Arrive()
	}
	if method == &s.opts.Initialize { // those that follow may rely on it
		s.run(ctx, r, m.params)
		return
	}
	s.running.Go(func() { s.run(ctx, r, m.params) })
}

// run carries out a request and answers it.
func (s *Server) run(ctx context.Context, r *Request, params json.RawMessage) {
	defer r.cancel(nil)
	defer r.Leave()
	result, err := any(nil), s.begin(ctx, r)
	defer r.rest()
	if err == nil {
		limit := time.AfterFunc(workTime, r.rest)
		result, err = r.method.run(ctx, r, params)
		limit.Stop()
	}
	r.over()
	s.mu.Lock()
	cancelled := r.cancelled
	s.ready = s.ready || err == nil && r.method == &s.opts.Initialize
	s.mu.Unlock()
	a := answer{ID: r.ID, Result: result}
	switch {
	case cancelled:
		a.Result, a.Error = nil, cancelledError()
	case err != nil:
		a.Result, a.Error = nil, s.failure(ctx, err)
	}
	line := encodeAnswer(a)
	if s.settle(r) {
		s.out.send(line)
	}
}

// begin waits until there is room for working on a request, and for its result. The request counts
// as in work until its answer is queued, unless it rests earlier.
func (s *Server) begin(ctx context.Context, r *Request) error {
	r.rest = func() {}
	select {
	case s.working <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r.rest = sync.OnceFunc(func() { <-s.working })
	s.out.room()
	return nil
}

// settle removes a request from the open ones. It returns false if it was answered already.
func (s *Server) settle(r *Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[string(r.ID)] != r {
		return false
	}
	delete(s.open, string(r.ID))
	s.openBytes -= r.size
	return true
}

func (s *Server) failure(ctx context.Context, err error) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	message, data := s.opts.ErrorData(ctx, err)
	return &Error{Code: CodeFailed, Message: message, Data: data}
}

func (s *Server) refuse(id json.RawMessage, err *Error) {
	s.out.send(encodeAnswer(answer{ID: id, Error: err}))
}

// cancelMethod cancels another request. The server implements it because it concerns no tool.
const cancelMethod = "cancel"

// CancelParams are the params of cancel.
type CancelParams struct {
	ID json.RawMessage `json:"id" jsonschema:"the id of the request to cancel"`
}

// CancelResult is the result of cancel.
type CancelResult struct {
	Cancelled bool `json:"cancelled" jsonschema:"false if there is no such request, or it was answered before"`
}

func (s *Server) cancel(m message) {
	result, err := s.cancelled(m.params)
	if err != nil {
		s.refuse(m.id, &Error{Code: CodeInvalidParams, Message: "params of cancel: " + err.Error()})
		return
	}
	s.out.send(encodeAnswer(answer{ID: m.id, Result: result}))
}

func (s *Server) cancelled(params json.RawMessage) (CancelResult, error) {
	var p CancelParams
	if err := decode(params, members(reflect.TypeFor[CancelParams]()), &p); err != nil {
		return CancelResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.open[string(p.ID)]
	if r == nil {
		return CancelResult{}, nil
	}
	r.cancelled = true
	r.cancel(ErrCancelled)
	return CancelResult{true}, nil
}

// ask asks the host a question and waits for the result. An error of the host is an *Error.
func (r *Request) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	r.rest()
	s := r.server
	got := make(chan message, 1)
	s.mu.Lock()
	s.questions++
	id := fmt.Sprintf("toolreg-%d", s.questions)
	s.asked[id] = got
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.asked, id)
	}()
	line, err := encode(call{Version: version, ID: id, Method: method, Params: params})
	if err != nil {
		return nil, err
	}
	s.out.send(line)
	select {
	case m, ok := <-got:
		if !ok {
			return nil, errEnded
		}
		if m.failure != nil {
			message, _ := jsonx.Text(jsonx.Get(m.failure, "message"))
			return nil, &Error{Code: CodeFailed,
				Message: strings.TrimSpace("the host answered with an error: " + text.Head(message, 1000))}
		}
		return m.result, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// answered handles an answer from the host. It ignores an answer to no open question.
func (s *Server) answered(m message) {
	id, ok := jsonx.Text(m.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.asked[id]; ok && got != nil {
		delete(s.asked, id)
		got <- m
	}
}

// notify sends a notification. It waits for a host that reads slowly.
func (s *Server) notify(method string, params any) {
	if line, err := encode(call{Version: version, Method: method, Params: params}); err == nil {
		s.out.send(line)
	}
}

// tryNotify sends a notification. It is dropped if the host reads too slowly.
func (s *Server) tryNotify(method string, params any) {
	if line, err := encode(call{Version: version, Method: method, Params: params}); err == nil {
		s.out.post(line)
	}
}
