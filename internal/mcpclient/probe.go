package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Two generations of the protocol begin differently. A modern server (revision
// 2026-07-28 and later) answers server/discover; a legacy one wants initialize.
// The SDK sends server/discover first and goes on to initialize when that is
// refused, but it waits for the refusal without a limit of its own. There are
// servers that never answer what they do not know, and servers that take
// seconds to start; from outside the two look alike. So silence is no reason to
// kill or restart anything: when the window has passed without an answer, the
// wire sends initialize itself, behind the probe and on the same connection, and
// then takes what comes.
//
//   - The probe is refused, or initialize succeeds: legacy. A server that ignores
//     the probe costs one window, once, since what was spoken is remembered
//     (Options.Protocols); one that starts slowly costs nothing.
//   - The probe succeeds and initialize is refused, or not answered within
//     another window: modern.
//   - Both succeed: legacy, since initialize is what the server saw last.
//   - The server dies of the probe: it is connected anew in legacy mode.
//
// The SDK sees one answer to its server/discover, and where it sends initialize
// after that, the answer that the wire already got or waits for.

// protocolMode says which generations to try.
type protocolMode int

const (
	modeAuto   protocolMode = iota // probe, then initialize
	modeLegacy                     // initialize alone
	modeModern                     // server/discover alone, no window
)

// The SDK's names of the first modern and the last legacy revision.
const (
	firstModern = "2026-07-28"
	lastLegacy  = "2025-11-25"
)

// Windows of the probe. HTTP servers answer every request, but one that is just
// being woken takes its time, and a modern one counts initialize as a mistake;
// the long one is for servers that are known to be modern.
const (
	stdioWindow = 150 * time.Millisecond
	httpWindow  = 3 * time.Second
	knownWindow = 5 * time.Second
)

// initializeID is the id of our own initialize.
const initializeID = "toolreg-initialize"

// handshake is the state of the beginning.
type handshake struct {
	probed   bool              // server/discover was sent
	discover jsonrpc.ID        // of the SDK's server/discover
	probe    *jsonrpc.Response // what answered it
	settled  bool              // the SDK has its answer to server/discover

	own    jsonrpc.ID        // of our initialize, invalid while there is none
	greet  *jsonrpc.Response // what answered ours
	waiter jsonrpc.ID        // of the SDK's initialize that waits for that

	shaken bool            // initialize was answered, or server/discover with success
	result json.RawMessage // of the one that counts
}

// discover sends the probe without waiting for more than the window. The SDK
// probes again when a server refuses the revision and names others that both
// speak (revision 2026-07-28, UnsupportedProtocolVersionError).
func (w *wire) discover(ctx context.Context, r *jsonrpc.Request) {
	w.mu.Lock()
	w.hands.probed, w.hands.discover = true, r.ID
	w.hands.probe, w.hands.settled = nil, false
	w.mu.Unlock()
	w.spawn(func() {
		if err := w.inner.Write(ctx, r); err != nil {
			w.shake(r.ID, &jsonrpc.Response{ID: r.ID, Error: probeError(err)})
		}
	})
	if w.opts.mode != modeModern {
		w.after(w.opts.window, func() { w.initialize(ctx, r.ID) })
	}
}

// initialize sends our own initialize unless the probe of that id was answered
// or one was sent before.
func (w *wire) initialize(ctx context.Context, probe jsonrpc.ID) {
	w.mu.Lock()
	if w.hands.probe != nil || w.hands.discover != probe || w.hands.own.IsValid() {
		w.mu.Unlock()
		return
	}
	id, _ := jsonrpc.MakeID(initializeID)
	w.hands.own = id
	w.pending[id] = &pending{method: "initialize"}
	w.mu.Unlock()
	if err := w.inner.Write(bareContext{ctx}, &jsonrpc.Request{ID: id, Method: "initialize", Params: w.opts.greeting}); err != nil {
		w.shake(id, &jsonrpc.Response{ID: id, Error: refusedHere(err.Error())})
	}
}

// bareContext hides the values of a context: the SDK's names the revision of
// the probe, which initialize must not claim to be.
type bareContext struct{ context.Context }

// Value implements [context.Context].
func (bareContext) Value(any) any { return nil }

// mayInitialize reports whether the SDK's initialize goes on the wire.
func (w *wire) mayInitialize(id jsonrpc.ID) bool {
	if w.opts.mode == modeModern {
		w.inject(&jsonrpc.Response{ID: id, Error: refusedHere("the server does not speak revision " + firstModern + " or later")})
		return false
	}
	if w.opts.barred != nil && w.opts.barred() {
		// Some servers let anybody initialize, and a modern one would answer so
		// as to hide what it wants.
		w.inject(&jsonrpc.Response{ID: id, Error: refusedHere("the server wants a login")})
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.hands.own.IsValid() {
		return true
	}
	w.hands.waiter = id
	if greet := w.hands.greet; greet != nil {
		w.keep(greet)
		w.spawnLocked(func() { w.deliver(as(id, greet)) })
	}
	return false
}

// shake takes an answer of the handshake in and hands the SDK what follows
// from it.
func (w *wire) shake(id jsonrpc.ID, r *jsonrpc.Response) {
	w.mu.Lock()
	h := &w.hands
	switch id {
	case h.discover:
		h.probe = r
	case h.own:
		h.greet = r
	default: // the SDK's own initialize
		h.shaken = true
		w.keep(r)
		w.mu.Unlock()
		w.deliver(r)
		return
	}
	h.shaken = h.shaken || id == h.own || r.Error == nil
	answer, wait := h.decide()
	if answer != nil {
		w.keep(answer)
	}
	probe := h.discover
	w.mu.Unlock()
	switch {
	case answer != nil:
		w.deliver(answer)
	case wait:
		w.after(w.opts.window, func() { w.settle(probe) })
	}
}

// decide returns what to tell the SDK now, or that another window is to be
// waited for the answer that is missing.
func (h *handshake) decide() (answer *jsonrpc.Response, wait bool) {
	greeted := h.greet != nil && h.greet.Error == nil
	switch {
	case h.settled:
		if h.greet == nil || !h.waiter.IsValid() {
			return nil, false
		}
		return as(h.waiter, h.greet), false
	case h.own.IsValid() && greeted:
		h.settled = true
		return &jsonrpc.Response{ID: h.discover, Error: refusedHere("initialize succeeded")}, false
	case h.probe == nil:
		return nil, true
	case h.own.IsValid() && h.greet == nil && isModern(h.probe):
		return nil, true
	}
	h.settled = true
	return h.probe, false
}

// settle answers the SDK's server/discover of that id with what there is.
func (w *wire) settle(probe jsonrpc.ID) {
	w.mu.Lock()
	h := &w.hands
	if h.settled || h.discover != probe {
		w.mu.Unlock()
		return
	}
	h.settled = true
	answer := h.probe
	if answer == nil {
		answer = &jsonrpc.Response{ID: h.discover, Error: refusedHere("no answer to the probe")}
	}
	w.keep(answer)
	w.mu.Unlock()
	w.deliver(answer)
}

// keep remembers the result of a successful handshake, whose revision the next
// request over HTTP has to tell already.
func (w *wire) keep(r *jsonrpc.Response) {
	if r.Error != nil {
		return
	}
	w.hands.result = r.Result
	if v, ok := text(member(r.Result, "protocolVersion")); ok {
		w.opts.version.Store(&v)
	}
}

// state returns a copy of the handshake's state.
func (w *wire) state() handshake {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hands
}

// as returns an answer under another id.
func as(id jsonrpc.ID, r *jsonrpc.Response) *jsonrpc.Response {
	return &jsonrpc.Response{ID: id, Result: r.Result, Error: r.Error}
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

// isModern reports whether r is a server/discover result with a modern revision.
func isModern(r *jsonrpc.Response) bool {
	if r.Error != nil {
		return false
	}
	versions, _ := elements(member(r.Result, "supportedVersions"))
	return slices.ContainsFunc(versions, func(v json.RawMessage) bool {
		s, ok := text(v)
		return ok && s >= firstModern
	})
}
