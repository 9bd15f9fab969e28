package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/cluster"
	"github.com/toolreg/toolreg/internal/serve/task"
	"github.com/toolreg/toolreg/internal/serve/transport"
)

// HTTPOptions configure [Server.HTTP].
type HTTPOptions struct {
	// Tokens are the tokens that clients need. Nil Tokens mean that no token is needed.
	Tokens *auth.Tokens
	// OAuth knows the access tokens that clients need in place of Tokens, unless it is nil.
	OAuth *auth.OAuth
	// Loopback says that only this machine can reach the address. Requests for other
	// hosts are then rejected, because web pages can send such requests (DNS rebinding).
	Loopback bool
	// LoginPage writes a page of a login (oauth.per: client). A nil LoginPage means that there are no
	// such logins.
	LoginPage func(io.Writer, LoginPage)
	// Log receives refused requests at level warn. A nil Log discards them.
	Log *slog.Logger
}

// HTTP serves a [Server] over streamable HTTP. Create it with [Server.HTTP]. A message of a client takes this way:
//
//  1. ServeHTTP, which refuses web pages of other sites and chooses by the path what answers;
//  2. protocol, which finds out who sends it, and the profile and the session that it is for;
//  3. post, which reads it, waits for its turn, and refuses what no client may send now;
//  4. passOn, which has the replica handle it that must;
//  5. pass, which gives it to the SDK, where [requests] go on with it.
type HTTP struct {
	entry
	server      *Server
	opts        HTTPOptions
	sessions    http.Handler // of the SDK, for revisions before 2026-07-28
	modern      http.Handler // of the SDK, without sessions
	checks      healthChecks
	leaving     atomic.Bool // the health check fails
	draining    atomic.Bool // new requests are refused
	connections transport.Connections
	bodies      transport.Bodies
	slots       transport.Slots
	requests    auth.Running
	inbound     sync.Map         // *transport.Inbound by [transport.RequestName]: what the SDK is handling in sessions
	calls       atomic.Int64     // number of running POST requests
	metrics     http.HandlerFunc // answers /metrics, unless it is nil
	console     http.Handler     // answers /console and what is below, unless it is nil
	visits      auth.Running     // to the console
	logins      http.Handler     // answers what is below /login, unless it is nil
}

// HTTP returns the handler for HTTP.
func (s *Server) HTTP(opts HTTPOptions) *HTTP {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	h := &HTTP{entry: entry{log: opts.Log}, server: s, opts: opts,
		slots: transport.Slots{Processors: runtime.GOMAXPROCS(0)}}
	switch {
	case opts.OAuth != nil:
		h.tokens = opts.OAuth
		s.calls.claimed.Store(true)
	case opts.Tokens != nil:
		h.tokens = opts.Tokens
	}
	if opts.LoginPage != nil && h.tokens != nil {
		h.logins = &loginPages{entry: h.entry, logins: &s.logins, write: opts.LoginPage}
	}
	pick := func(*http.Request) *mcp.Server { return s.sdk }
	o := mcp.StreamableHTTPOptions{
		Logger: s.opts.Messages, MaxRequestBodyBytes: transport.MaxBody, DisableLocalhostProtection: true,
	}
	h.sessions = transport.Handler(mcp.NewStreamableHTTPHandler(pick, &o))
	o.Stateless, o.PropagateRequestCancellation = true, true
	h.modern = transport.Handler(mcp.NewStreamableHTTPHandler(pick, &o))
	return h
}

// Server returns an HTTP server with time limits for slow clients.
func (h *HTTP) Server() *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ConnContext: h.connections.Opened, ConnState: h.connections.Changed,
		ErrorLog: slog.NewLogLogger(h.opts.Log.Handler(), slog.LevelDebug),
	}
}

// ServeHTTP implements http.Handler.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 || h.leaving.Load() {
		// net/http ignores a Content-Length next to Transfer-Encoding, but a proxy may
		// have used it: then what follows on the connection is not a request. And a
		// server that shuts down must not close connections on which a request may be
		// arriving.
		header := w.Header()
		w = transport.BeforeAnswer{ResponseWriter: w, Do: func() { header.Set("Connection", "close") }}
	}
	path := r.URL.EscapedPath() // a proxy may have rules for the path as it is spelled
	// Checks with HTTP/1.0 name no host.
	nameless := r.Host == "" && (path == "/healthz" || path == "/readyz")
	if err := transport.CheckOrigin(r, h.opts.Loopback); err != nil && !nameless {
		h.refuse(w, r, http.StatusForbidden, err.Error())
		return
	}
	profile, named := strings.CutPrefix(path, auth.Endpoint+"/")
	switch {
	case h.console != nil && (path == ConsolePath || strings.HasPrefix(path, ConsolePath+"/")):
		h.console.ServeHTTP(w, r)
	case h.opts.OAuth != nil && h.opts.OAuth.ServeMetadata(w, r): // it has answered
	case h.logins != nil && strings.HasPrefix(path, loginPath):
		h.logins.ServeHTTP(w, r)
	case path == "/healthz":
		h.health(w, r)
	case path == "/readyz":
		h.readiness(w, r)
	case path == "/metrics" && h.metrics != nil:
		h.metrics(w, r)
	case path == auth.Endpoint:
		h.protocol(w, r, "")
	case named && profile != "":
		h.protocol(w, r, profile)
	default:
		http.Error(w, "not found; the MCP endpoint is "+auth.Endpoint, http.StatusNotFound)
	}
}

// Console serves the console to browsers with a token that may enter it. It must be called
// before the first request, and needs [HTTPOptions].Tokens.
func (h *HTTP) Console(pages ConsolePages) {
	h.console = &console{
		entry: h.entry, pages: pages, scoped: h.opts.OAuth != nil, visits: &h.visits, byID: map[auth.Hash]browser{},
		cookie: "toolreg-" + strings.ToLower(rand.Text()[:8]), // cookies of other ports of this host have other names
	}
}

// Metrics serves /metrics to clients with a token. It must be called before the first
// request.
func (h *HTTP) Metrics(serve http.HandlerFunc) { h.metrics = h.WithToken(serve) }

// WithToken returns a handler that only clients with a token for the whole registry reach: those
// that are bound to a profile must not learn what is outside it.
func (h *HTTP) WithToken(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, ok := h.authenticated(w, r)
		switch {
		case !ok:
		case h.server.isBound(from):
			h.refuse(w, r, http.StatusForbidden, "forbidden: this token is bound to a profile")
		default:
			next(w, r)
		}
	}
}

// revokeEvery is how often tokens are looked at, so that what belongs to one that was
// removed ends soon.
const revokeEvery = time.Second

// FollowTokens ends the streams, sessions and calls of tokens that expire, are removed from their
// file or are not accepted any more, until ctx is done. It also follows the keys of access tokens.
func (h *HTTP) FollowTokens(ctx context.Context) {
	if h.tokens == nil {
		return
	}
	if h.opts.OAuth != nil {
		var keys sync.WaitGroup
		keys.Go(func() { h.opts.OAuth.Follow(ctx) })
		defer keys.Wait()
	}
	tick := time.Tick(revokeEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		invalid := func(from auth.Identity) bool { _, ok := h.tokens.Renew(from); return !ok }
		h.visits.CancelOf(func(from auth.Identity) bool { now, ok := h.tokens.Renew(from); return !ok || !now.Console })
		h.requests.CancelOf(invalid)
		h.server.tasks.EndOf(func(from auth.Identity) bool { return invalid(from.AnyToken()) }, auth.ErrRevoked)
		h.server.sessions.EndOf(invalid)
	}
}

// permitCalls returns why a message with calls of tools is rejected (serve.oauth.scopes), or nil if
// it is permitted. Calls within a call, such as those of scripts, are checked when they are made,
// see package caller.
func (h *HTTP) permitCalls(in *transport.Inbound) *auth.Rejection {
	o := h.opts.OAuth
	if o == nil || len(o.Settings().Scopes) == 0 {
		return nil
	}
	for _, message := range in.Messages() {
		if method, _ := jsonx.Text(jsonx.Get(message, "method")); method != "tools/call" {
			continue
		}
		params := jsonx.Get(message, "params")
		name, _ := jsonx.Text(jsonx.Get(params, "name"))
		spellings := spellings(in.R.Context(), h.server.offers, in.From, name, jsonx.Get(params, "arguments"))
		if no := o.Permit(in.From, spellings...); no != nil {
			return no
		}
	}
	return nil
}

// protocol authenticates a request and passes it on. profile is the one that the address names, and empty
// if it names none.
func (h *HTTP) protocol(w http.ResponseWriter, r *http.Request, profile string) {
	from, ok := h.authenticated(w, r)
	if !ok {
		return
	}
	if from.Profile, ok = h.server.Profiles().For(from.Profile, from.Groups, profile); !ok {
		h.refuse(w, r, http.StatusNotFound, "not found: there is no such profile, or not for this client")
		return
	}
	from.Base = h.baseOf(r)
	if err := transport.CheckHeaders(r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	in := transport.NewInbound(w, r, from)
	var at cluster.Peer
	switch {
	case in.Session == "":
	case h.server.replica != nil:
		if at, ok = h.server.replica.FindSession(in); !ok {
			return
		}
	case !h.server.sessions.Belongs(in.Session, from.Account()):
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	ctx, done := h.requests.Add(auth.With(r.Context(), from), from)
	defer done()
	in.R = r.WithContext(ctx)
	if r.Method == http.MethodPost {
		h.post(in, at)
		return
	}
	h.passOn(in, at)
}

// baseOf returns the beginning of the addresses of this server: that of the settings or, if only
// this machine can reach it, that of the request. Otherwise it returns "", because a client could
// name another host, which would get the codes of logins.
func (h *HTTP) baseOf(r *http.Request) string {
	if h.opts.OAuth != nil {
		if base, ok := strings.CutSuffix(h.opts.OAuth.Settings().Audience.Value, auth.Endpoint); ok {
			return base
		}
		return ""
	}
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	host, port, err := net.SplitHostPort(r.Host)
	switch {
	case !h.opts.Loopback || !ok || err != nil || port != strconv.Itoa(at.Port):
		return ""
	case !strings.EqualFold(host, "localhost") && !at.IP.Equal(net.ParseIP(host)):
		// Another program may listen at 127.0.0.2.
		return ""
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// post reads a message and passes it to the SDK when it is its client's turn.
func (h *HTTP) post(in *transport.Inbound, at cluster.Peer) {
	h.calls.Add(1) // before the look at draining, so that Drain waits for what it does not refuse
	draining := h.draining.Load()
	if draining {
		h.calls.Add(-1)
	} else {
		defer h.calls.Add(-1)
	}
	var status int
	var err error
	if in.Body, status, err = h.bodies.Read(in.W, in.R, in.From.Name); err != nil {
		http.Error(in.W, err.Error(), status)
		return
	}
	isRequest := jsonx.Get(in.Body, "id") != nil && jsonx.Get(in.Body, "method") != nil
	if draining && (in.Session == "" || isRequest || jsonx.KindOf(in.Body) != jsonx.Object) {
		transport.TryLater(in.W, errLeaving) // anything but an answer for a running call, or a cancellation
		return
	}
	done, err := h.slots.Take(in.R.Context(), in.From.Name, cmp.Or(in.Session, in.R.RemoteAddr))
	if err != nil {
		return // the client is gone
	}
	defer done()
	switch {
	case !in.SameRevision():
		in.Refuse(mcp.CodeHeaderMismatch,
			"the header Mcp-Protocol-Version and the message name different revisions of the protocol")
		return
	case in.Modern && !task.Same(transport.NameOf(in.R.Header), in.Body):
		in.Refuse(mcp.CodeHeaderMismatch, "the header Mcp-Name and the message name different tasks")
		return
	}
	if err := transport.CheckBody(in.Body); err != nil {
		http.Error(in.W, err.Error(), http.StatusBadRequest)
		return
	}
	if no := h.permitCalls(in); no != nil {
		h.reject(in.W, in.R, no)
		return
	}
	if method := in.Member("method"); !in.Modern && in.Session == "" && method != "" && method != "initialize" {
		in.Refuse(jsonrpc.CodeInvalidRequest,
			"the header Mcp-Session-Id is missing: a session begins with initialize, and revision "+wire.FirstModern+
				" needs the header Mcp-Protocol-Version")
		return
	}
	if !h.admit(in) {
		in.W.Header().Set("Retry-After", "10")
		http.Error(in.W, errFull.Error(), http.StatusServiceUnavailable)
		return
	}
	h.passOn(in, at)
}

// admit reports whether the limit for clients permits a request. A new session, or connection, takes
// the place of an idle one, if there is one.
func (h *HTTP) admit(in *transport.Inbound) bool {
	most := h.server.limits().MaxClients
	switch {
	case in.Modern:
		unused, ok := h.connections.Admit(in.R.Context(), in.From.Name, most)
		if unused != nil {
			h.server.closing.Go(func() { _ = unused.Close() })
		}
		return ok
	case in.Session != "":
		return true
	}
	return h.server.sessions.MakeRoom(in.From.Name, most, in.Member("method") == "initialize")
}

var (
	errLeaving = errors.New("shutting down")
	errFull    = errors.New("too many clients, none of which is idle (serve.maxClients); " +
		"try again later, or end sessions that are not needed")
)

// passOn passes a request to the replica that must handle it: at, unless the call that it continues, or what it
// needs, is elsewhere. The zero value is this one.
func (h *HTTP) passOn(in *transport.Inbound, at cluster.Peer) {
	if h.server.replica != nil {
		h.server.replica.Forward(in, at)
		return
	}
	h.pass(in)
}

// pass passes a request to the SDK, which checks all other headers that repeat what the message says.
func (h *HTTP) pass(in *transport.Inbound) {
	if err := checkParams(h.server.offers, in); err != nil {
		in.Refuse(mcp.CodeHeaderMismatch, err.Error())
		return
	}
	in.Stream = transport.NewResponse(in.W, h.server.limits().KeepAlive)
	defer in.Stream.End()
	method := in.Member("method")
	switch name := transport.RequestName(in.Session, jsonx.Get(in.Body, "id")); {
	case in.Session == "" || method == "":
	case name != "":
		h.inbound.Store(name, in)
		defer h.inbound.CompareAndDelete(name, in)
	case method == "notifications/cancelled":
		name = transport.RequestName(in.Session, jsonx.Get(jsonx.Get(in.Body, "params"), "requestId"))
		if unwanted, ok := h.inbound.Load(name); ok {
			unwanted.(*transport.Inbound).Stream.Drop()
		}
	}
	by := h.sessions
	switch {
	case in.Modern:
		in.R.Header.Del("Mcp-Session-Id") // the revision has no sessions
		by = h.modern
	case in.Session == "":
		by = h.server.ids.Begin(by, rand.Text())
	default:
		done, ok := h.server.sessions.Request(in.Session, in.From, in.R.Method == http.MethodGet)
		if !ok { // the SDK may still be closing it, and would not answer
			http.Error(in.W, "session not found", http.StatusNotFound)
			return
		}
		defer done()
		if in.R.Method == http.MethodDelete {
			h.server.sessions.End(in.Session)
		}
	}
	in.Serve(by)
}
