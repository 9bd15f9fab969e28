package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/cluster"
)

// inbound is a request of a client over HTTP to the MCP endpoint, from its check until its response
// is over.
type inbound struct {
	w       http.ResponseWriter
	r       *http.Request
	from    auth.Identity
	modern  bool            // it is of a revision without sessions
	session string          // Mcp-Session-Id; "": it names none
	body    json.RawMessage // a message, or a batch of them; nil unless it is a POST

	// What follows is set by [HTTP.pass].
	stream *response
	call   string          // see requestName; "" for others than requests in a session
	open   context.Context // ends when the response is over, or its client is gone
}

// newInbound returns a request whose sender is known.
func newInbound(w http.ResponseWriter, r *http.Request, from auth.Identity) *inbound {
	in := &inbound{w: w, r: r, from: from, modern: r.Header.Get("Mcp-Protocol-Version") >= firstModern}
	if !in.modern {
		in.session = r.Header.Get("Mcp-Session-Id")
	}
	return in
}

// member returns a member of the message that is text; "" if there is none.
func (in *inbound) member(name string) string {
	value, _ := jsonx.Text(jsonx.Get(in.body, name))
	return value
}

// messages returns the message, or those of the batch.
func (in *inbound) messages() []json.RawMessage {
	if batch, ok := jsonx.Elements(in.body); ok {
		return batch
	}
	return []json.RawMessage{in.body}
}

// underway is a request until its response is over, and then nil: the SDK keeps it as long as a
// session that begins with the request.
type underway = atomic.Pointer[inbound]

type underwayKey struct{}

// extraUnderway is the member of what the SDK passes on about the sender of a message that has the
// *underway of the request with which it came.
const extraUnderway = "inbound"

// extraRequest is like extraUnderway for a message on stdin: the *[jsonrpc.Request] itself.
const extraRequest = "request"

// withInbound makes a handler of the SDK pass on the request with which a message came, as it does with
// what it has found out about a token.
func withInbound(handler http.Handler) http.Handler {
	known := func(ctx context.Context, _ string, _ *http.Request) (*sdkauth.TokenInfo, error) {
		return withExtra(extraUnderway, ctx.Value(underwayKey{})), nil
	}
	return sdkauth.RequireBearerToken(known, &sdkauth.RequireBearerTokenOptions{AllowMissingExpiration: true})(handler)
}

// checked is the header Authorization of requests to a handler of [withInbound], which asks for one.
const checked = "Bearer checked"

// begin passes to the SDK a request that may begin a session, which has the id then. The SDK asks for
// ids of sessions, but not for which request, so requests take turns until it has asked, or answers.
func (h *HTTP) begin(w http.ResponseWriter, r *http.Request, id string) {
	s := h.server
	s.naming.Lock()
	next := sync.OnceFunc(s.naming.Unlock)
	defer next()
	s.sessionID = func() string { defer next(); return id }
	h.sessions.ServeHTTP(beforeAnswer{w, next}, r)
}

// inboundOf returns the request over HTTP with which a message came; nil if there is none, or it has
// been answered.
func inboundOf(req mcp.Request) *inbound {
	if in, ok := extraOf(req, extraUnderway).(*underway); ok {
		return in.Load()
	}
	return nil
}

// withExtra returns what the SDK passes on with a message that has a member, see [extraOf].
func withExtra(member string, value any) *sdkauth.TokenInfo {
	return &sdkauth.TokenInfo{Extra: map[string]any{member: value}}
}

// extraOf returns a member of what the transport passes on with a message; nil if there is none.
func extraOf(req mcp.Request, member string) any {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		return extra.TokenInfo.Extra[member]
	}
	return nil
}

// identify returns who sends a message: the sender of its request over HTTP or, if that has
// been answered, of the request that began the session, or the client on stdin.
func (s *Server) identify(ctx context.Context, req mcp.Request) auth.Identity {
	if in := inboundOf(req); in != nil {
		return in.from
	}
	if from, ok := auth.From(ctx); ok {
		return from
	}
	return auth.Identity{Name: caller.Stdio, Profile: s.opts.Profile}
}

// requestName returns what names a request among those of all sessions, "" if the id is none.
func requestName(session string, id json.RawMessage) string {
	if kind := jsonx.KindOf(id); kind != jsonx.String && kind != jsonx.Number {
		return ""
	}
	return session + " " + jsonx.Canonical(id)
}

// unanswered drops the answer to a request that its client has canceled.
func (s *Server) unanswered(call string) {
	s.inbound.Range(func(key, _ any) bool {
		if in := key.(*inbound); call != "" && in.call == call {
			in.stream.drop()
		}
		return true
	})
}

// protocol authenticates a request and passes it to the SDK. profile is the one that the
// address names; "" if it names none.
func (h *HTTP) protocol(w http.ResponseWriter, r *http.Request, profile string) {
	from, ok := h.authenticated(w, r)
	if !ok {
		return
	}
	if from.Profile, ok = h.server.profileFor(from, profile); !ok {
		h.refuse(w, r, http.StatusNotFound, "not found: there is no such profile, or not for this client")
		return
	}
	from.Base = h.baseOf(r)
	if err := checkHeaders(r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	in := newInbound(w, r, from)
	var at place
	if in.session != "" {
		var err error
		if at, err = h.locate(r.Context(), in.session, from); err != nil {
			h.storeAway(w, err)
			return
		}
		if !at.found {
			http.Error(w, "session not found", http.StatusNotFound)
			return
		}
	}
	ctx, done := h.requests.Add(auth.With(r.Context(), from), from)
	defer done()
	in.r = r.WithContext(ctx)
	if r.Method == http.MethodPost {
		h.post(in, at.holder)
		return
	}
	h.pass(in, at.holder)
}

// post reads a message and passes it to the SDK when it is its client's turn.
func (h *HTTP) post(in *inbound, at cluster.Peer) {
	h.calls.Add(1) // before the look at draining, so that Drain waits for what it does not refuse
	draining := h.draining.Load()
	if draining {
		h.calls.Add(-1)
	} else {
		defer h.calls.Add(-1)
	}
	var status int
	var err error
	if in.body, status, err = h.bodies.Read(in.w, in.r, in.from.Name); err != nil {
		http.Error(in.w, err.Error(), status)
		return
	}
	isRequest := jsonx.Get(in.body, "id") != nil && jsonx.Get(in.body, "method") != nil
	if draining && (in.session == "" || isRequest || jsonx.KindOf(in.body) != jsonx.Object) { // no answer for a running call, and no cancellation
		in.w.Header().Set("Retry-After", "1")
		http.Error(in.w, "shutting down", http.StatusServiceUnavailable)
		return
	}
	done, err := h.slots.Take(in.r.Context(), in.from.Name, cmp.Or(in.session, in.r.RemoteAddr))
	if err != nil {
		return // the client is gone
	}
	defer done()
	switch {
	case !in.sameRevision():
		refuseMessage(in.w, in.body, mcp.CodeHeaderMismatch, "the header Mcp-Protocol-Version and the message name different revisions of the protocol")
		return
	case in.modern && !sameTask(nameOf(in.r.Header), in.body):
		refuseMessage(in.w, in.body, mcp.CodeHeaderMismatch, "the header Mcp-Name and the message name different tasks")
		return
	}
	if err := checkBody(in.body); err != nil {
		http.Error(in.w, err.Error(), http.StatusBadRequest)
		return
	}
	if no := h.permitCalls(in); no != nil {
		h.reject(in.w, in.r, no)
		return
	}
	if method := in.member("method"); !in.modern && in.session == "" && method != "" && method != "initialize" {
		refuseMessage(in.w, in.body, jsonrpc.CodeInvalidRequest, "the header Mcp-Session-Id is missing: a session begins with initialize, and revision "+firstModern+" needs the header Mcp-Protocol-Version")
		return
	}
	if !h.admit(in) {
		in.w.Header().Set("Retry-After", "10")
		http.Error(in.w, errFull.Error(), http.StatusServiceUnavailable)
		return
	}
	if in.modern {
		at = h.whereIs(in)
	}
	h.pass(in, at)
}

// admit reports whether the limit for clients permits a request. A new session, or connection, takes
// the place of an idle one, if there is one.
func (h *HTTP) admit(in *inbound) bool {
	most := h.server.limits().MaxClients
	switch {
	case in.modern:
		unused, ok := h.connections.Admit(in.r.Context(), in.from.Name, most)
		if unused != nil {
			h.server.closing.Go(func() { _ = unused.Close() })
		}
		return ok
	case in.session != "":
		return true
	}
	ended, ok := h.server.sessions.makeRoom(in.from.Name, most, in.member("method") == "initialize")
	if ended != nil {
		h.server.closing.Go(func() { _ = ended.Close() })
	}
	return ok
}

// pass passes a request to the SDK, or to the replica that must handle it; zero is this one.
func (h *HTTP) pass(in *inbound, at cluster.Peer) {
	if at != (cluster.Peer{}) {
		h.forward(in, at)
		return
	}
	in.stream = newResponse(in.w, h.server.limits().KeepAlive)
	defer in.stream.end()
	in.open = in.r.Context()
	if in.session != "" && in.body != nil {
		in.call = requestName(in.session, jsonx.Get(in.body, "id"))
		if in.call == "" && in.member("method") == "notifications/cancelled" {
			h.server.unanswered(requestName(in.session, jsonx.Get(jsonx.Get(in.body, "params"), "requestId")))
		}
		h.server.inbound.Store(in, nil)
		defer h.server.inbound.Delete(in)
	}
	handler := h.sessions
	switch {
	case in.modern:
		in.r.Header.Del("Mcp-Session-Id") // the revision has no sessions
		handler = h.modern
	case in.session == "":
		handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.begin(w, r, rand.Text()) })
	default:
		done, ok := h.server.sessions.request(in.session, in.from, in.r.Method == http.MethodGet)
		if !ok { // the SDK may still be closing it, and would not answer
			http.Error(in.w, "session not found", http.StatusNotFound)
			return
		}
		defer done()
		if in.r.Method == http.MethodDelete {
			h.server.sessions.end(in.session)
		}
	}
	under := &underway{}
	under.Store(in)
	defer under.Store(nil)
	r := in.r.WithContext(context.WithValue(in.r.Context(), underwayKey{}, under))
	decodeName(r.Header)
	r.Header.Set("Authorization", checked)
	if in.body != nil {
		r.Body = io.NopCloser(bytes.NewReader(in.body))
	}
	handler.ServeHTTP(in.stream, r)
}

// sameRevision reports whether each message and the header of its request agree on whether
// the revision has sessions.
func (in *inbound) sameRevision() bool {
	return !slices.ContainsFunc(in.messages(), func(message json.RawMessage) bool {
		inBody, ok := jsonx.Text(jsonx.Get(jsonx.Get(jsonx.Get(message, "params"), "_meta"), mcp.MetaKeyProtocolVersion))
		return ok && inBody >= firstModern != in.modern
	})
}

// refuseMessage answers a message that does not agree with the headers of its request.
func refuseMessage(w http.ResponseWriter, body json.RawMessage, code int64, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": jsonx.Get(body, "id"), "error": jsonrpc.Error{
		Code: code, Message: reason}})
}
