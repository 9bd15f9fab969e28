// Package wire implements the client side of MCP for one server: one [Session]
// over stdio, streamable HTTP or the older HTTP with server-sent events (SSE).
//
// A request runs through the package in this order:
//
//   - session.go: [Session.Do] adds the request to the table of unanswered
//     requests (table.go), sends it, and waits for its answer or its end;
//     message.go defines the request and its params as sent.
//   - stdio.go and http_links.go: the three links, which carry messages. Those
//     over HTTP send them with the client of http.go and read streams of events (stream.go).
//   - incoming.go: passes incoming answers to their requests, and handles
//     progress, changes and the server's questions.
//
// handshake.go opens a session in any revision of the protocol, and stream.go
// keeps the streams for messages that servers send on their own.
//
// Results are passed on as the server sent them. Everything that comes from
// the server has a limit here: lines, bodies, events, text that is not a
// message, redirects, concurrent questions.
package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/tracing"
)

// Options configure a session: the identity of the client, and the receivers of
// messages that the server sends on its own.
type Options struct {
	Client       mcp.Implementation      // our name and version
	Capabilities *mcp.ClientCapabilities // what the server may ask for
	LogLevel     string                  // the lowest level of log messages to request, "" for none

	Logger *slog.Logger // protocol details (debug) and malformed messages (warn); not nil

	// Answer answers a request from the server for which [ask.IsQuestion] reports true.
	// during is our request that was running when it arrived, nil if none was.
	Answer func(ctx context.Context, during *ask.Request,
		method string, params json.RawMessage) (json.RawMessage, error)

	// Notified receives every notification of the server except progress and cancellations,
	// together with our request that was running when it arrived, or nil. It must return
	// immediately, and reports whether it has handled the notification. It may be nil.
	Notified func(during *ask.Request, method string, params json.RawMessage) bool

	// Changed is called when the server reports a change. It must return at once, and may
	// be nil.
	Changed func(Change)

	// LogMessage receives the server's log messages, each with our request that was running when it
	// arrived, or nil. A nil LogMessage drops them.
	LogMessage func(during *ask.Request, level, logger, text string)
}

// Change is a change reported by a server.
type Change struct {
	List string // tools, prompts or resources; "" for one resource
	URI  string // of that resource
}

// Session is a conversation with a server. It is safe for concurrent use.
type Session struct {
	opts   Options
	link   Link
	cancel context.CancelFunc
	done   <-chan struct{} // closed by Close, and when the connection has ended
	over   chan struct{}   // closed when no more messages can arrive from the server

	receiving sync.Mutex // one message is received at a time
	logs      sync.Once  // requests log messages

	table
	completions sync.Map // channels that are closed when the user has finished, by the id of the elicitation

	mu        sync.Mutex
	opening   Opening       // set by Handshake
	confirmed *confirmation // of a legacy session over HTTP, else nil
	waited    bool          // Wait was called: no more goroutines are started
	running   sync.WaitGroup
}

// Server is a server's description of itself.
type Server struct {
	Capabilities mcp.ServerCapabilities `json:"capabilities"`
	Instructions string                 `json:"instructions,omitempty"` // for models; not to be trusted
	Info         json.RawMessage        `json:"info,omitempty"`         // name and version as sent, nil if it sent none
	Tasks        bool                   `json:"tasks,omitempty"`        // calls may continue as tasks (revision 2025-11-25)
}

// Opening is the result of a handshake, also for a session that continues over another link.
type Opening struct {
	Revision string `json:"revision"` // "" until it has succeeded
	Server
}

// Opening returns the result of the handshake.
func (s *Session) Opening() Opening {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opening
}

// Revision returns the revision of the protocol in use, "" before the handshake.
func (s *Session) Revision() string { return s.Opening().Revision }

// Modern reports whether the session speaks revision 2026-07-28 or later.
func (s *Session) Modern() bool { return s.Revision() >= FirstModern }

// Server returns the server's description of itself from the handshake.
func (s *Session) Server() Server { return s.Opening().Server }

// Start starts to receive from a server. Values of ctx are passed to background work, which
// ends with [Session.Close] or with ctx. Call [Session.Handshake] next, and in any case Close
// and [Session.Wait].
func Start(ctx context.Context, link Link, opts Options) *Session {
	ctx, cancel := context.WithCancel(ctx)
	s := &Session{
		opts: opts, link: link, cancel: cancel, done: ctx.Done(), over: make(chan struct{}),
		table: table{pending: map[int64]*Request{}, questions: map[jsonrpc.ID]context.CancelCauseFunc{},
			refusing: make(chan struct{}, maxRefusals)},
	}
	s.running.Go(func() {
		err := link.run(ctx, s)
		cancel()
		s.table.end(err)
		close(s.over)
	})
	return s
}

// Alive reports whether requests can still be made.
func (s *Session) Alive() bool {
	closed, err := s.table.ended()
	return !closed && err == nil
}

// Done is closed when the connection has ended, for the reason that Err returns then.
func (s *Session) Done() <-chan struct{} { return s.over }

// Err returns why the connection has ended; nil before that.
func (s *Session) Err() error {
	_, err := s.table.ended()
	return err
}

// Do makes a request and returns its result as the server sent it. It may be called again
// with the same request, which is then sent again.
//
// Errors are a [*jsonrpc.Error] from the server; an [*AnswerError]; a [*HTTPError] if the server or a
// proxy refused the request, which may wrap either; a [*LoginError]; a [*SessionLostError]; the
// reason for which the connection ended, such as io.EOF; or the cause of ctx. If ctx ends
// first, the server is told that the answer is no longer needed.
func (s *Session) Do(ctx context.Context, r *Request) (json.RawMessage, error) {
	if r.Asked != nil {
		s.askForLogs(ctx)
	}
	s.mu.Lock()
	confirmed := s.confirmed
	s.mu.Unlock()
	early := confirmed.await(ctx, r)
	result, err := s.exchange(ctx, r)
	var refused *jsonrpc.Error
	if early != nil && errors.As(err, &refused) {
		select {
		case <-early:
		case <-ctx.Done():
		}
		return s.exchange(ctx, r)
	}
	return result, err
}

// confirmation is the end of a legacy handshake over streamable HTTP. A failed step is
// treated as done.
type confirmation struct {
	requested *signal // the request for the session's own stream was written
	open      *signal // and answered
	written   *signal // notifications/initialized was written
	answered  *signal // and answered

	streamless atomic.Bool // the server has no such stream
}

// maxStreamWait limits how long the session's own stream may take to open.
const maxStreamWait = 250 * time.Millisecond

// await waits until the server is ready for a request, which it is if c is nil. A request for
// a list can be repeated, so it does not wait for the answer to notifications/initialized:
// early is closed when that answer arrives, and nil if it has arrived.
func (c *confirmation) await(ctx context.Context, r *Request) (early <-chan struct{}) {
	if c == nil {
		return nil
	}
	before := c.answered
	if strings.HasSuffix(r.Method, "/list") {
		before = c.written
	}
	select {
	case <-before.c:
	case <-ctx.Done():
	}
	if !isClosed(c.answered.c) {
		return c.answered.c
	}
	if r.Asked == nil {
		return nil
	}
	select {
	case <-c.open.c:
	case <-time.After(maxStreamWait):
		c.open.close() // no request needs to wait any more
	case <-ctx.Done():
	}
	return nil
}

// exchange sends a request and waits for its answer.
func (s *Session) exchange(ctx context.Context, r *Request) (json.RawMessage, error) {
	ctx, span := startSpan(ctx, r, s.Revision(), s.http())
	defer span.End()
	result, err := s.exchangeOnce(ctx, r)
	if s.Revision() != "" && s.http().hasLost(err) {
		err = &SessionLostError{Text: err.Error()}
	}
	describe(ctx, span, result, err)
	return result, err
}

// exchangeOnce sends a request with the trace of ctx and waits for its answer.
func (s *Session) exchangeOnce(ctx context.Context, r *Request) (json.RawMessage, error) {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.trace = map[string]string{}
	tracing.Inject(ctx, func(name, value string) { r.trace[name] = value })
	m, err := s.begin(r, cancel)
	if err != nil {
		return nil, err
	}
	tracing.Current(ctx).Set("jsonrpc.request.id", strconv.FormatInt(r.id, 10))
	defer s.table.forget(r)
	// A canceled caller gets no more progress or questions.
	stop := context.AfterFunc(within, func() { s.table.forget(r) })
	defer stop()
	err = s.send(within, m)
	if errors.Is(err, io.ErrClosedPipe) {
		err = nil // the session has ended or is about to, and knows the reason
	}
	if err == nil {
		select {
		case <-r.answered:
		case <-within.Done():
		case <-s.over:
		}
	}
	switch {
	case r.isAnswered():
		return r.result, r.err
	case ctx.Err() != nil:
		s.sayCancelled(ctx, r)
		return nil, context.Cause(ctx)
	case within.Err() != nil:
		return nil, context.Cause(within)
	case err != nil:
		return nil, err
	}
	return nil, s.Err()
}

// maxLogLevel is how long a server may take to confirm the log level.
const maxLogLevel = 100 * time.Millisecond

// askForLogs requests log messages from a legacy server, once: many servers send none unless
// asked. It waits for the answer, since a server may handle requests concurrently and start
// with the call. Over HTTP, where that costs a round trip, it asks only if all messages are
// wanted. A modern server gets the level with each request.
func (s *Session) askForLogs(ctx context.Context) {
	s.logs.Do(func() {
		level := s.opts.LogLevel
		_, local := s.link.(*Stdio)
		if level == "" || !local && level != "debug" || s.Modern() || s.Server().Capabilities.Logging == nil {
			return
		}
		s.spawnFor(maxLogLevel, func() {
			_, _ = s.Do(context.WithoutCancel(ctx),
				&Request{Method: "logging/setLevel", Params: marshal(map[string]string{"level": level})})
		})
	})
}

// http returns the HTTP client of the session; nil over stdio.
func (s *Session) http() *HTTP {
	switch link := s.link.(type) {
	case *HTTP:
		return link
	case *SSE:
		return link.http
	}
	return nil
}

func (s *Session) begin(r *Request, cancel context.CancelCauseFunc) (message, error) {
	if err := s.table.begin(r, cancel); err != nil {
		return message{}, err
	}
	m := message{request: r, method: r.Method, revision: s.Revision()}
	if r.revision != nil {
		m.revision = *r.revision
	}
	id, _ := jsonrpc.MakeID(float64(r.id))
	m.Message = &jsonrpc.Request{ID: id, Method: r.Method, Params: s.opts.params(r, m.revision)}
	return m, nil
}

const (
	// maxCancelled limits how long a canceled request waits for notifications/cancelled
	// to be written: if the process exited at once, it would never be sent.
	maxCancelled = 250 * time.Millisecond
	// cancelTime limits the time for writing it to a server that may not be reading.
	cancelTime = 5 * time.Second
)

// sayCancelled tells the server that the answer to a request is no longer needed. The
// protocol forbids canceling the requests of the handshake.
func (s *Session) sayCancelled(ctx context.Context, r *Request) {
	if r.Method == methodInitialize || r.Method == methodDiscover {
		return
	}
	params := marshal(&mcp.CancelledParams{RequestID: r.id, Reason: ctx.Err().Error()})
	s.spawnFor(maxCancelled, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer cancel()
		s.notify(ctx, "notifications/cancelled", params)
	})
}

// notify sends a notification. Failures are only logged.
func (s *Session) notify(ctx context.Context, method string, params json.RawMessage) {
	m := message{method: method, revision: s.Revision(), Message: &jsonrpc.Request{Method: method, Params: params}}
	if err := s.send(ctx, m); err != nil {
		s.opts.Logger.Debug("a notification was not delivered", "method", method, "error", err)
	}
}

func (s *Session) send(ctx context.Context, m message) error {
	s.trace("to server", m.Message)
	return s.link.send(ctx, s, m)
}

// trace logs which messages are sent and received, but not their content.
func (s *Session) trace(direction string, m jsonrpc.Message) {
	switch m := m.(type) {
	case *jsonrpc.Request:
		s.opts.Logger.Debug(direction, "method", text.Head(m.Method, 100), "id", m.ID.Raw())
	case *jsonrpc.Response:
		s.opts.Logger.Debug(direction, "answer", m.ID.Raw(), "bytes", len(m.Result), "failed", m.Error != nil)
	}
}

// Close ends the session: pending requests fail with cause, and the server is told. It
// returns at once, and may be called more than once. cause must not be nil.
func (s *Session) Close(cause error) {
	s.table.close(cause)
	s.cancel()
}

// Over reports whether the connection has ended.
func (s *Session) Over() bool { return isClosed(s.over) }

// Wait returns when all goroutines of the session have ended. Call Close first. A server
// over stdio must have exited as well.
func (s *Session) Wait() {
	<-s.over
	s.mu.Lock()
	s.waited = true
	s.mu.Unlock()
	s.running.Wait()
}

// spawn runs f in a goroutine unless Wait was called, and reports whether it did. f must return
// when the session is closed.
func (s *Session) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waited {
		return false
	}
	s.running.Go(f)
	return true
}

// spawnFor is spawn, but waits for the end of f for at most d.
func (s *Session) spawnFor(d time.Duration, f func()) {
	ended := make(chan struct{})
	if s.spawn(func() { defer close(ended); f() }) {
		waitFor(ended, d)
	}
}

// whileOpen runs f in the background with the values of ctx, in a context that ends with the
// session or when stop is called.
func (s *Session) whileOpen(ctx context.Context, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	started := s.spawn(func() {
		defer cancel()
		select {
		case <-s.done:
		case <-ctx.Done():
		}
	}) && s.spawn(func() {
		defer cancel()
		f(ctx)
	})
	if !started {
		cancel()
	}
	return cancel
}
