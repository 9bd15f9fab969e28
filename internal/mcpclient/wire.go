package mcpclient

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// wireOptions tune a wire.
type wireOptions struct {
	mode   protocolMode
	window time.Duration // how long the probe waits, see probe.go
	// greeting is the params of initialize, which the SDK would send.
	greeting json.RawMessage
	log      *slog.Logger
	version  *atomic.Pointer[string] // gets the revision that initialize agreed on
	// barred reports whether the server refused the last request for want of a
	// login; nil where there is none.
	barred func() bool
	// listen hears what a server says on a stream of its own until ctx ends; nil
	// where there is none.
	listen func(ctx context.Context, session string, hear func(jsonrpc.Message))
	// validated says that the connection below hands out valid JSON alone.
	validated bool
	answer    answerer                                // questions of the server
	note      func(level, logger string, text string) // log messages of the server; nil = none
}

// wire stands between the SDK's session and a connection (stdio, streamable
// HTTP, SSE). It keeps raw results (exchange), answers the SDK's probe in time
// (probe.go), and deals with notifications itself: the SDK queues them without
// bound and delivers progress after the result.
type wire struct {
	opts  wireOptions
	inner mcp.Connection

	in   chan jsonrpc.Message
	eof  chan struct{} // closed when inner has ended; err is set
	logs chan struct{} // closed when the server has answered how much it is to log
	done chan struct{} // closed by Close
	once sync.Once

	logging sync.Once  // closes logs
	hearing sync.Mutex // one message is taken in at a time

	mu       sync.Mutex
	err      error
	pending  map[jsonrpc.ID]*pending
	serving  int // requests of the server without an answer yet
	serial   int // of the last request of ours
	refusing int // of those beyond, whose refusal is being written
	// questions are those of the server that are being answered.
	questions map[jsonrpc.ID]context.CancelCauseFunc
	visits    map[string]chan struct{} // addresses whose completion is awaited
	hands     handshake
	issued    int64  // the highest id of a request of ours
	strange   string // id of an answer to no request, "" if there was none
	waited    bool   // wait was called: no goroutine is started any more
	running   sync.WaitGroup
}

// pending is a request of ours without an answer.
type pending struct {
	method   string
	exchange *exchange
	serial   int // in the order in which they were sent
}

// wireTransport makes the SDK use a wire.
type wireTransport struct {
	inner mcp.Transport
	opts  wireOptions
	made  *wire
}

// Connect implements [mcp.Transport].
func (t *wireTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.made = newWire(ctx, inner, t.opts)
	return t.made, nil
}

// newWire returns a wire over inner that ends with ctx.
func newWire(ctx context.Context, inner mcp.Connection, opts wireOptions) *wire {
	w := &wire{
		opts: opts, inner: inner,
		in:      make(chan jsonrpc.Message),
		eof:     make(chan struct{}),
		logs:    make(chan struct{}),
		done:    make(chan struct{}),
		pending: map[jsonrpc.ID]*pending{},

		questions: map[jsonrpc.ID]context.CancelCauseFunc{},
		visits:    map[string]chan struct{}{},
	}
	context.AfterFunc(ctx, w.shut)
	go w.pump(context.WithoutCancel(ctx))
	return w
}

// SessionID implements [mcp.Connection].
func (w *wire) SessionID() string { return w.inner.SessionID() }

// Read implements [mcp.Connection].
func (w *wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-w.in:
		return m, nil
	case <-w.done:
		return nil, io.EOF
	case <-w.eof:
		w.mu.Lock()
		defer w.mu.Unlock()
		return nil, w.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection].
func (w *wire) Write(ctx context.Context, m jsonrpc.Message) error {
	w.trace("to server", m)
	r, ok := m.(*jsonrpc.Request)
	switch {
	case !ok:
		w.mu.Lock()
		w.serving--
		w.mu.Unlock()
		return w.inner.Write(ctx, m)
	case r.IsCall():
		return w.request(ctx, r)
	case r.Method == "notifications/initialized" && w.opts.listen != nil && w.SessionID() != "":
		w.listen(context.WithoutCancel(ctx))
	}
	err := w.inner.Write(ctx, m)
	if x := exchangeOf(ctx); x != nil && r.Method == "notifications/cancelled" {
		x.withdrawn()
	}
	return err
}

// listen hears the server's own stream until the wire ends.
func (w *wire) listen(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	w.spawn(func() {
		defer cancel()
		select {
		case <-w.done:
		case <-w.eof:
		}
	})
	w.spawn(func() {
		w.opts.listen(ctx, w.SessionID(), func(m jsonrpc.Message) { w.hear(ctx, m) })
	})
}

// trace logs what goes over the wire, not what is in it.
func (w *wire) trace(direction string, m jsonrpc.Message) {
	switch m := m.(type) {
	case *jsonrpc.Request:
		w.opts.log.Debug(direction, "method", cut(m.Method, 100), "id", m.ID.Raw())
	case *jsonrpc.Response:
		w.opts.log.Debug(direction, "answer", m.ID.Raw(), "bytes", len(m.Result), "failed", m.Error != nil)
	}
}

func (w *wire) request(ctx context.Context, r *jsonrpc.Request) error {
	w.mu.Lock()
	w.serial++
	w.pending[r.ID] = &pending{method: r.Method, exchange: exchangeOf(ctx), serial: w.serial}
	if n, ok := r.ID.Raw().(int64); ok {
		w.issued = max(w.issued, n)
	}
	w.mu.Unlock()
	switch r.Method {
	case "server/discover":
		w.discover(ctx, r)
		return nil
	case "initialize":
		if !w.mayInitialize(r.ID) {
			w.drop(r.ID)
			return nil
		}
	case "tools/call", "prompts/get", "resources/read":
		r = exchangeOf(ctx).resumed(r)
	}
	err := w.inner.Write(ctx, r)
	if err != nil {
		w.drop(r.ID)
	}
	return err
}

// stray returns the id of an answer that belonged to no request.
func (w *wire) stray() (id string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.strange, w.strange != ""
}

// version returns the revision that initialize was answered with.
func (w *wire) version() string {
	if w == nil {
		return ""
	}
	v, _ := text(member(w.state().result, "protocolVersion"))
	return v
}

// drop forgets a request: nothing of the server answers it any more.
func (w *wire) drop(id jsonrpc.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, id)
	w.endQuestions()
}

// forget drops what is pending for a caller that has gone, so that neither late
// progress nor a question reaches it. It may be called more than once.
func (w *wire) forget(x *exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.pending, func(_ jsonrpc.ID, p *pending) bool { return p.exchange == x })
	w.endQuestions()
}

// Close implements [mcp.Connection].
func (w *wire) Close() error {
	w.shut()
	return w.inner.Close()
}

// shut ends the SDK's reading, and with it all that the SDK waits for.
func (w *wire) shut() { w.once.Do(func() { close(w.done) }) }

// wait returns when nothing of the wire runs any more. Close comes first.
func (w *wire) wait() {
	<-w.eof
	w.mu.Lock()
	w.waited = true
	w.mu.Unlock()
	w.running.Wait()
}

// spawn runs f, which ends when the wire is closed or has ended.
func (w *wire) spawn(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spawnLocked(f)
}

func (w *wire) spawnLocked(f func()) {
	if !w.waited {
		w.running.Go(f)
	}
}

// after runs f when d has passed, unless the wire ends before.
func (w *wire) after(d time.Duration, f func()) {
	w.spawn(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			f()
		case <-w.done:
		case <-w.eof:
		}
	})
}
