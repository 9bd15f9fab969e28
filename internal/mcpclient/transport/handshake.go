package transport

import (
	"context"
	"encoding/json"
	"net/http/httptrace"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// handshake is the state of a connection's handshake, see probe.go.
type handshake struct {
	probed      bool              // server/discover was sent
	probeID     jsonrpc.ID        // of the SDK's server/discover
	probeAnswer *jsonrpc.Response // the server's
	probeOver   bool              // the SDK has its answer to server/discover

	initializeID     jsonrpc.ID        // of our initialize, invalid if there is none
	initializeAnswer *jsonrpc.Response // the server's to ours
	sdkInitializeID  jsonrpc.ID        // the SDK's initialize that waits for that answer

	answered bool            // initialize was answered, or server/discover with success
	result   json.RawMessage // of the one in use

	initialized chan struct{} // closed when notifications/initialized was answered; nil if nothing waits for that
	listening   *signal       // given when the server's own stream was opened or refused; nil if there is none
}

// Handshake reports how far the handshake came: whether the probe was sent, and
// whether it succeeded or initialize was answered.
func (c *Conn) Handshake() (probed, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.handshake.probed, c.handshake.answered
}

// HandshakeResult returns the result of initialize or server/discover, whichever
// is in use, as the server sent it; nil until then.
func (c *Conn) HandshakeResult() json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.handshake.result
}

// handshakeAnswer processes an answer during the handshake and gives the SDK
// what follows from it.
func (c *Conn) handshakeAnswer(id jsonrpc.ID, r *jsonrpc.Response) {
	c.mu.Lock()
	h := &c.handshake
	switch id {
	case h.probeID:
		h.probeAnswer = r
	case h.initializeID:
		h.initializeAnswer = r
	default: // the SDK's own initialize
		h.answered = true
		c.takeResult(r)
		c.mu.Unlock()
		c.deliver(r)
		return
	}
	h.answered = h.answered || id == h.initializeID || r.Error == nil
	answer, wait := h.decide()
	if answer != nil {
		c.takeResult(answer)
	}
	probe := h.probeID
	c.mu.Unlock()
	switch {
	case answer != nil:
		c.deliver(answer)
	case wait:
		c.after(c.opts.ProbeWindow, func() { c.endProbe(probe) })
	}
}

// decide returns the answer that the SDK gets now, or reports that the missing answer is
// given another window.
func (h *handshake) decide() (answer *jsonrpc.Response, wait bool) {
	initialized := h.initializeAnswer != nil && h.initializeAnswer.Error == nil && jsonx.Get(h.initializeAnswer.Result, "protocolVersion") != nil // else it only looks like success
	switch {
	case h.probeOver:
		if h.initializeAnswer == nil || !h.sdkInitializeID.IsValid() {
			return nil, false
		}
		return withID(h.sdkInitializeID, h.initializeAnswer), false
	case h.initializeID.IsValid() && initialized:
		h.probeOver = true
		return &jsonrpc.Response{ID: h.probeID, Error: refusedHere("initialize succeeded")}, false
	case h.probeAnswer == nil:
		return nil, true
	case h.initializeID.IsValid() && h.initializeAnswer == nil && isModern(h.probeAnswer):
		return nil, true
	}
	h.probeOver = true
	return h.probeAnswer, false
}

// endProbe answers the SDK's server/discover with that id.
func (c *Conn) endProbe(probe jsonrpc.ID) {
	c.mu.Lock()
	h := &c.handshake
	if h.probeOver || h.probeID != probe {
		c.mu.Unlock()
		return
	}
	h.probeOver = true
	answer := h.probeAnswer
	if answer == nil {
		answer = &jsonrpc.Response{ID: h.probeID, Error: refusedHere("no answer to the probe")}
	}
	c.takeResult(answer)
	c.mu.Unlock()
	c.deliver(answer)
}

// takeResult stores the result of a successful handshake, whose revision the
// next request over HTTP must already name. c.mu is held.
func (c *Conn) takeResult(r *jsonrpc.Response) {
	if r.Error != nil {
		return
	}
	c.handshake.result = r.Result
	if v, ok := jsonx.Text(jsonx.Get(r.Result, "protocolVersion")); ok && c.opts.HTTP != nil {
		c.opts.HTTP.version.Store(&v)
	}
}

// sendInitialized sends notifications/initialized over HTTP without waiting for the
// answer, which would cost a round trip. It returns once the request is written, so that
// later requests reach the server after it.
func (c *Conn) sendInitialized(ctx context.Context, r *jsonrpc.Request) {
	if c.SessionID() != "" {
		c.listen(context.WithoutCancel(ctx))
	}
	answered, written := make(chan struct{}), signal{c: make(chan struct{})}
	c.mu.Lock()
	c.handshake.initialized = answered
	c.mu.Unlock()
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { written.give() }}
	c.spawn(func() {
		defer close(answered)
		if err := c.inner.Write(httptrace.WithClientTrace(oneway(ctx), trace), r); err != nil {
			c.opts.Logger.Debug("notifications/initialized was refused", "error", err)
		}
	})
	select {
	case <-written.c:
	case <-answered:
	case <-c.done.c: // nothing was started
	}
}

// awaitInitialized waits until the server has answered notifications/initialized. A
// request for a list does not wait, because it can be repeated; its exchange remembers
// that it was early.
func (c *Conn) awaitInitialized(ctx context.Context, method string) {
	c.mu.Lock()
	answered := c.handshake.initialized
	c.mu.Unlock()
	if answered == nil {
		return
	}
	if x := exchangeOf(ctx); x != nil && strings.HasSuffix(method, "/list") {
		x.wasEarly(answered)
		return
	}
	select {
	case <-answered:
	case <-c.done.c:
	case <-ctx.Done():
	}
}

// withID returns an answer with another id.
func withID(id jsonrpc.ID, r *jsonrpc.Response) *jsonrpc.Response {
	return &jsonrpc.Response{ID: id, Result: r.Result, Error: r.Error}
}

// isModern reports whether r is a server/discover result with a modern revision.
func isModern(r *jsonrpc.Response) bool {
	if r.Error != nil {
		return false
	}
	versions, _ := jsonx.Elements(jsonx.Get(r.Result, "supportedVersions"))
	return slices.ContainsFunc(versions, func(v json.RawMessage) bool {
		s, ok := jsonx.Text(v)
		return ok && s >= FirstModern
	})
}
