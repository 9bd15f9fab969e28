package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxServerRequests is how many requests of a server may wait for our answer;
// more are dropped.
const maxServerRequests = 16

// maxRounds is how often one call is sent, the first time included.
const maxRounds = 6

// wireOptions tune a wire.
type wireOptions struct {
	mode   protocolMode
	window time.Duration // how long the probe waits, see probe.go
	// greeting is the params of initialize, which the SDK would send.
	greeting json.RawMessage
	log      *slog.Logger
	version  *atomic.Pointer[string] // gets the revision that initialize agreed on
	// validated says that the connection below hands out valid JSON alone.
	validated bool
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
	done chan struct{} // closed by Close
	once sync.Once

	mu      sync.Mutex
	err     error
	pending map[jsonrpc.ID]*pending
	serving int // requests of the server without an answer yet
	hands   handshake
	waited  bool // wait was called: no goroutine is started any more
	running sync.WaitGroup
}

// pending is a request of ours without an answer.
type pending struct {
	method   string
	exchange *exchange
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
		done:    make(chan struct{}),
		pending: map[jsonrpc.ID]*pending{},
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
	r, ok := m.(*jsonrpc.Request)
	switch {
	case !ok:
		w.mu.Lock()
		w.serving--
		w.mu.Unlock()
		return w.inner.Write(ctx, m)
	case r.IsCall():
		return w.request(ctx, r)
	}
	err := w.inner.Write(ctx, m)
	if x := exchangeOf(ctx); x != nil && r.Method == "notifications/cancelled" {
		x.withdrawn()
	}
	return err
}

func (w *wire) request(ctx context.Context, r *jsonrpc.Request) error {
	w.mu.Lock()
	w.pending[r.ID] = &pending{method: r.Method, exchange: exchangeOf(ctx)}
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
	case "tools/call":
		if !w.again(r.ID, exchangeOf(ctx)) {
			w.drop(r.ID)
			return nil
		}
	}
	err := w.inner.Write(ctx, r)
	if err != nil {
		w.drop(r.ID)
	}
	return err
}

// drop forgets a request: nothing of the server answers it any more.
func (w *wire) drop(id jsonrpc.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, id)
}

// forget drops what is pending for a caller that has gone, so that late
// progress does not reach it.
func (w *wire) forget(x *exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.pending, func(_ jsonrpc.ID, p *pending) bool { return p.exchange == x })
}

// again counts how often the SDK sends one call: a server may answer that it
// needs input, and then gets the call anew, but not for ever.
func (w *wire) again(id jsonrpc.ID, x *exchange) bool {
	if x == nil {
		return true
	}
	x.mu.Lock()
	x.rounds++
	over := x.rounds > maxRounds
	x.mu.Unlock()
	if over {
		w.inject(&jsonrpc.Response{ID: id, Error: refusedHere(fmt.Sprintf("it asked for input more than %d times", maxRounds-1))})
	}
	return !over
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

// pump reads until the connection ends, after Close too: a server that blocks
// on its stdout would not get to see that its stdin was closed.
func (w *wire) pump(ctx context.Context) {
	for {
		m, err := w.inner.Read(ctx)
		var bad *badMessageError
		if errors.As(err, &bad) {
			m, err = w.salvage(bad), nil
		}
		if err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			close(w.eof)
			return
		}
		if m = w.incoming(m); m != nil {
			w.deliver(m)
		}
	}
}

func (w *wire) deliver(m jsonrpc.Message) {
	select {
	case w.in <- m:
	case <-w.done:
	case <-w.eof:
	}
}

// inject hands the SDK an answer of our own, from within its Write.
func (w *wire) inject(r *jsonrpc.Response) {
	w.spawn(func() { w.deliver(r) })
}

// incoming returns what the SDK is to see of a message, nil for nothing.
func (w *wire) incoming(m jsonrpc.Message) jsonrpc.Message {
	switch m := m.(type) {
	case *jsonrpc.Response:
		if w.response(m) {
			return m
		}
	case *jsonrpc.Request:
		if m.IsCall() && w.serve() || m.Method == "notifications/cancelled" {
			return m
		}
		if !m.IsCall() {
			w.notification(m)
		}
	}
	return nil
}

// serve counts a request of the server in and reports whether it may be
// answered.
func (w *wire) serve() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.serving >= maxServerRequests {
		return false
	}
	w.serving++
	return true
}

func (w *wire) response(r *jsonrpc.Response) bool {
	w.mu.Lock()
	p := w.pending[r.ID]
	delete(w.pending, r.ID)
	w.mu.Unlock()
	if p == nil {
		w.opts.log.Debug("answer to no request dropped", "id", r.ID.Raw())
		return false
	}
	w.check(r)
	if p.method == "initialize" || p.method == "server/discover" {
		w.shake(r.ID, r)
		return false
	}
	if p.exchange != nil {
		p.exchange.capture(p.method, r)
	}
	return true
}

// check turns an answer that is none into an error.
func (w *wire) check(r *jsonrpc.Response) {
	if r.Error != nil {
		r.Result = nil
		return
	}
	r.Result = bytes.TrimSpace(r.Result)
	if !w.opts.validated && !json.Valid(r.Result) {
		r.Result = nil
	}
	if len(r.Result) == 0 {
		r.Error = malformed("the answer holds neither a result nor an error")
	}
}

// salvage makes an answer of a malformed message, where it can be told what it
// should have answered, so that nobody waits for it in vain.
func (w *wire) salvage(bad *badMessageError) jsonrpc.Message {
	w.opts.log.Warn("malformed message of the server", "error", bad.Error())
	w.mu.Lock()
	defer w.mu.Unlock()
	id := bad.id
	if !id.IsValid() && bad.answer && len(w.pending) == 1 {
		for only := range w.pending {
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

// badMessageError tells of JSON that is no JSON-RPC message; the connection
// lives on.
type badMessageError struct {
	id     jsonrpc.ID // of what it may answer; invalid if unknown
	answer bool       // it looks like an answer to whatever we asked
	reason string
}

func (e *badMessageError) Error() string { return fmt.Sprintf("malformed message: %s", e.reason) }
