package transport

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The two generations of the protocol begin differently. A modern server
// (revision 2026-07-28 and later) answers server/discover; a legacy one expects
// initialize. The SDK sends server/discover first and falls back to initialize
// when that is refused, but it waits for the refusal without a limit. Some
// servers never answer unknown requests, and some take seconds to start; from
// outside the two look alike. Therefore silence is no reason to kill or restart
// anything: if the window passes without an answer, the Conn sends initialize
// itself, after the probe and on the same connection, and takes whichever
// answer comes.
//
//   - The probe is refused, or initialize succeeds: legacy. A server that
//     ignores the probe costs one window, and only once if the result is
//     stored; one that starts slowly costs nothing.
//   - The probe succeeds and initialize is refused, or not answered within
//     another window: modern.
//   - Both succeed: legacy, since initialize is what the server saw last.
//   - The server exits because of the probe: connect again in legacy mode.
//
// The SDK sees one answer to its server/discover. If it sends initialize after
// that, it gets the answer that the Conn already has or waits for.

// Mode selects the generations of the protocol to try.
type Mode int

// The modes.
const (
	ModeAuto   Mode = iota // server/discover, the probe, then initialize
	ModeLegacy             // only initialize
	ModeModern             // only server/discover, without a window
)

// The first modern and the last legacy revision of the protocol.
const (
	FirstModern = "2026-07-28"
	LastLegacy  = "2025-11-25"
)

// initializeID is the id of our own initialize.
const initializeID = "toolreg-initialize"

// probe sends the SDK's server/discover without waiting for more than the
// window. The SDK probes again when a server refuses the revision and names
// others that both speak (revision 2026-07-28, UnsupportedProtocolVersionError).
func (c *Conn) probe(ctx context.Context, r *jsonrpc.Request) {
	c.mu.Lock()
	c.handshake.probed, c.handshake.probeID = true, r.ID
	c.handshake.probeAnswer, c.handshake.probeOver = nil, false
	c.mu.Unlock()
	c.spawn(func() {
		if err := c.inner.Write(ctx, r); err != nil {
			c.handshakeAnswer(r.ID, &jsonrpc.Response{ID: r.ID, Error: probeError(err)})
		}
	})
	if c.opts.Mode != ModeModern {
		c.after(c.opts.ProbeWindow, func() { c.initialize(ctx, r.ID) })
	}
}

// initialize sends our own initialize unless the probe with that id was
// answered or initialize was already sent.
func (c *Conn) initialize(ctx context.Context, probe jsonrpc.ID) {
	c.mu.Lock()
	h := &c.handshake
	if h.probeAnswer != nil || h.probeID != probe || h.initializeID.IsValid() {
		c.mu.Unlock()
		return
	}
	id, _ := jsonrpc.MakeID(initializeID)
	h.initializeID = id
	c.requests.pending[id] = &pending{method: "initialize"}
	c.mu.Unlock()
	if err := c.inner.Write(withoutValues{ctx}, &jsonrpc.Request{ID: id, Method: "initialize", Params: c.opts.InitializeParams()}); err != nil {
		c.handshakeAnswer(id, &jsonrpc.Response{ID: id, Error: refusedHere(err.Error())})
	}
}

// withoutValues hides the values of a context: the SDK's value names the
// revision of the probe, which initialize must not claim.
type withoutValues struct{ context.Context }

// Value implements [context.Context].
func (withoutValues) Value(any) any { return nil }

// mayInitialize reports whether the SDK's initialize is sent to the server. If not, the
// SDK gets an answer of ours or that to our own initialize.
func (c *Conn) mayInitialize(id jsonrpc.ID) bool {
	if c.opts.Mode == ModeModern {
		c.inject(&jsonrpc.Response{ID: id, Error: refusedHere("the server does not speak revision " + FirstModern + " or later")})
		return false
	}
	if c.streamable() && c.opts.HTTP.needsLogin() {
		// Some servers let anybody initialize, and a modern one would answer in a way
		// that hides the need for a login.
		c.inject(&jsonrpc.Response{ID: id, Error: refusedHere("the server requires a login")})
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &c.handshake
	if !h.initializeID.IsValid() {
		return true
	}
	h.sdkInitializeID = id
	if answer := h.initializeAnswer; answer != nil {
		c.takeResult(answer)
		c.spawnLocked(func() { c.deliver(withID(id, answer)) })
	}
	return false
}

// probeError is the answer to a probe that could not be written, or that an HTTP
// server refused with an error status. A body that names other revisions goes
// through to the SDK, which picks one.
func probeError(err error) error {
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && refused.Code == mcp.CodeUnsupportedProtocolVersion {
		return refused
	}
	return refusedHere("the probe was refused: " + err.Error())
}

func refusedHere(message string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: message}
}
