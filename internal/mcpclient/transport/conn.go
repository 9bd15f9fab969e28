package transport

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/text"
)

// Options say how a [Conn] behaves.
type Options struct {
	Mode        Mode
	ProbeWindow time.Duration // how long to wait for the answer to the probe, see probe.go

	// InitializeParams returns what the SDK would send, for our own initialize.
	InitializeParams func() json.RawMessage

	HTTP     *HTTP // of the transport below; nil: stdio
	MaxEvent int64 // bytes of one event of the stream of the server's own messages

	Logger *slog.Logger // protocol details (debug) and malformed messages (warn); not nil

	// Answer answers a request from the server for which [ask.IsQuestion] reports true.
	// during is the request of ours that was running when it arrived, nil if none was.
	Answer func(ctx context.Context, during *ask.Request, method string, params json.RawMessage) (json.RawMessage, error)

	// Changed is called when the server reports a change. It must return at once, and may
	// be nil.
	Changed func(Change)

	// LogMessage receives the server's log messages, each with the request of ours that
	// was running when it arrived, nil if none was. If LogMessage is nil, they are
	// dropped.
	LogMessage func(during *ask.Request, level, logger, text string)
}

// Change is what a server reports as changed.
type Change struct {
	List string // tools, prompts or resources; "" for one resource
	URI  string // of that resource
}

// Transport makes the SDK use a [Conn] over Inner. It is used once.
type Transport struct {
	Inner   mcp.Transport
	Options Options
	Conn    *Conn // set by Connect
}

// Connect implements [mcp.Transport].
func (t *Transport) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := t.Inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.Conn = newConn(ctx, inner, t.Options)
	return t.Conn, nil
}

// Conn stands between the SDK's session and a connection (stdio, streamable HTTP, SSE).
// It keeps raw results (exchange.go), limits how long the SDK waits for the answer to its
// probe (probe.go), and handles notifications itself, because the SDK queues them without
// limit and may deliver progress after the result. It is safe for concurrent use.
type Conn struct {
	opts  Options
	inner mcp.Connection

	in   chan jsonrpc.Message // for the SDK
	eof  chan struct{}        // closed when inner has ended and err is set
	done signal               // given by Close
	logs signal               // given when the server has answered SetLogLevel

	receiving    sync.Mutex  // one message is received at a time
	paramHeaders atomic.Bool // HTTP headers repeat params of a listed tool

	mu        sync.Mutex
	err       error
	requests  requests
	questions questions
	handshake handshake
	waited    bool // Wait was called: no more goroutines are started
	running   sync.WaitGroup
}

// requests are our requests to the server.
type requests struct {
	pending    map[jsonrpc.ID]*pending // still unanswered
	serial     int                     // of the last one
	issued     int64                   // the highest id
	unexpected string                  // id of an answer that matches no request, "" if there was none
}

// pending is one of our requests that is still unanswered.
type pending struct {
	method   string
	exchange *Exchange
	serial   int // in the order in which they were sent
}

// newConn returns a Conn over inner that ends when ctx does.
func newConn(ctx context.Context, inner mcp.Connection, opts Options) *Conn {
	c := &Conn{
		opts: opts, inner: inner,
		in:        make(chan jsonrpc.Message),
		eof:       make(chan struct{}),
		done:      signal{c: make(chan struct{})},
		logs:      signal{c: make(chan struct{})},
		requests:  requests{pending: map[jsonrpc.ID]*pending{}},
		questions: questions{running: map[jsonrpc.ID]context.CancelCauseFunc{}, completions: map[string]chan struct{}{}},
	}
	context.AfterFunc(ctx, c.done.give)
	go c.receiveAll(context.WithoutCancel(ctx))
	return c
}

// SessionID implements [mcp.Connection].
func (c *Conn) SessionID() string { return c.inner.SessionID() }

// Alive reports whether requests can still be made.
func (c *Conn) Alive() bool {
	select {
	case <-c.eof:
		return false
	case <-c.done.c:
		return false
	default:
		return true
	}
}

// Read implements [mcp.Connection].
func (c *Conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.done.c:
		return nil, io.EOF
	case <-c.eof:
		c.mu.Lock()
		defer c.mu.Unlock()
		return nil, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection].
func (c *Conn) Write(ctx context.Context, m jsonrpc.Message) error {
	c.trace("to server", m)
	r, ok := m.(*jsonrpc.Request)
	switch {
	case !ok:
		c.mu.Lock()
		c.questions.waiting--
		c.mu.Unlock()
		return c.inner.Write(oneway(ctx), m)
	case r.IsCall():
		return c.request(ctx, r)
	case r.Method == "notifications/initialized" && c.streamable():
		c.sendInitialized(ctx, r)
		return nil
	}
	err := c.inner.Write(oneway(ctx), m)
	if x := exchangeOf(ctx); x != nil && r.Method == "notifications/cancelled" {
		x.cancelled.give()
	}
	return err
}

func (c *Conn) streamable() bool { return c.opts.HTTP != nil && c.opts.HTTP.streamable }

// trace logs which messages come and go, but not their content.
func (c *Conn) trace(direction string, m jsonrpc.Message) {
	switch m := m.(type) {
	case *jsonrpc.Request:
		c.opts.Logger.Debug(direction, "method", text.Head(m.Method, 100), "id", m.ID.Raw())
	case *jsonrpc.Response:
		c.opts.Logger.Debug(direction, "answer", m.ID.Raw(), "bytes", len(m.Result), "failed", m.Error != nil)
	}
}

// request sends a request of the SDK, whose answer arrives separately.
func (c *Conn) request(ctx context.Context, r *jsonrpc.Request) error {
	exchangeOf(ctx).begin(r.ID)
	c.mu.Lock()
	c.requests.serial++
	c.requests.pending[r.ID] = &pending{method: r.Method, exchange: exchangeOf(ctx), serial: c.requests.serial}
	if n, ok := r.ID.Raw().(int64); ok {
		c.requests.issued = max(c.requests.issued, n)
	}
	c.mu.Unlock()
	c.awaitInitialized(ctx, r.Method)
	c.awaitStream(ctx, exchangeOf(ctx))
	switch r.Method {
	case "server/discover":
		c.probe(ctx, r)
		return nil
	case "initialize":
		if !c.mayInitialize(r.ID) {
			c.drop(r.ID)
			return nil
		}
	case "tools/call", "prompts/get", "resources/read":
		r = exchangeOf(ctx).completed(r)
	}
	err := c.inner.Write(ctx, r)
	if err == nil {
		return nil
	}
	c.drop(r.ID)
	if c.opts.HTTP == nil || exchangeOf(ctx) == nil || errors.Is(err, errRejected) || errors.Is(err, mcp.ErrSessionMissing) {
		return err
	}
	return &rejectedError{err}
}

// logLevelID is the id of the request for log messages.
const logLevelID = "toolreg-logs"

// SetLogLevel asks a legacy server for log messages of at least the given
// level, and waits up to limit for any answer.
func (c *Conn) SetLogLevel(ctx context.Context, level string, limit time.Duration) {
	id, err := jsonrpc.MakeID(logLevelID)
	if err != nil {
		return
	}
	// If the server is gone, the next request fails.
	if c.inner.Write(ctx, &jsonrpc.Request{ID: id, Method: "logging/setLevel", Params: json.RawMessage(`{"level":` + jsonx.Quote(level) + `}`)}) == nil {
		waitFor(c.logs.c, limit)
	}
}

// UnexpectedAnswer returns the id of an answer that belonged to no request.
func (c *Conn) UnexpectedAnswer() (id string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests.unexpected, c.requests.unexpected != ""
}

// drop forgets a request that the server will not answer.
func (c *Conn) drop(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requests.pending, id)
	c.endQuestions()
}

// Forget drops the pending requests of a caller that has gone, so that neither
// late progress nor a question reaches it. It may be called more than once.
func (c *Conn) Forget(x *Exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.requests.pending, func(_ jsonrpc.ID, p *pending) bool { return p.exchange == x })
	c.endQuestions()
}

// Close implements [mcp.Connection]. It ends the SDK's reading, and with it everything
// that the SDK waits for.
func (c *Conn) Close() error {
	c.done.give()
	return c.inner.Close()
}

// Wait returns when all goroutines of the Conn have ended. Call Close first.
func (c *Conn) Wait() {
	<-c.eof
	c.mu.Lock()
	c.waited = true
	c.mu.Unlock()
	c.running.Wait()
}

// spawn runs f, which must return when the Conn is closed or has ended.
func (c *Conn) spawn(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spawnLocked(f)
}

func (c *Conn) spawnLocked(f func()) {
	if !c.waited {
		c.running.Go(f)
	}
}

// after runs f after d, unless the Conn ends first.
func (c *Conn) after(d time.Duration, f func()) {
	c.spawn(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			f()
		case <-c.done.c:
		case <-c.eof:
		}
	})
}
