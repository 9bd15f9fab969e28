package serve

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
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

const (
	// headerTime is the time limit for the headers of a request.
	headerTime = 10 * time.Second
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

// HTTP serves a [Server] over streamable HTTP. Create it with [Server.HTTP].
type HTTP struct {
	server      *Server
	opts        HTTPOptions
	tokens      auth.Verifier // nil if clients need no token
	sessions    http.Handler  // of the SDK, for revisions before 2026-07-28
	modern      http.Handler  // of the SDK, without sessions
	checks      healthChecks
	leaving     atomic.Bool // the health check fails
	draining    atomic.Bool // new requests are refused
	connections transport.Connections
	bodies      transport.Bodies
	slots       transport.Slots
	requests    auth.Running
	calls       atomic.Int64     // number of running POST requests
	metrics     http.HandlerFunc // answers /metrics, unless it is nil
	console     http.HandlerFunc // answers /console and what is below, unless it is nil
	browsers    browsers
	visits      auth.Running // to the console
}

// HTTP returns the handler for HTTP.
func (s *Server) HTTP(opts HTTPOptions) *HTTP {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	h := &HTTP{server: s, opts: opts, slots: transport.Slots{Processors: runtime.GOMAXPROCS(0)}}
	switch {
	case opts.OAuth != nil:
		h.tokens = opts.OAuth
		s.claimed.Store(true)
	case opts.Tokens != nil:
		h.tokens = opts.Tokens
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
	if h.console != nil && (path == ConsolePath || strings.HasPrefix(path, ConsolePath+"/")) {
		h.console(w, r)
		return
	}
	if h.opts.OAuth != nil && h.opts.OAuth.ServeMetadata(w, r) {
		return
	}
	if h.opts.LoginPage != nil && h.tokens != nil && strings.HasPrefix(path, loginPath) {
		h.serveLogin(w, r)
		return
	}
	switch path {
	case "/healthz":
		h.health(w, r)
	case "/readyz":
		h.readiness(w, r)
	case auth.Endpoint:
		h.protocol(w, r, "")
	case "/metrics":
		if h.metrics != nil {
			h.metrics(w, r)
			return
		}
		fallthrough
	default:
		if profile, ok := strings.CutPrefix(path, auth.Endpoint+"/"); ok && profile != "" {
			h.protocol(w, r, profile)
			return
		}
		http.Error(w, "not found; the MCP endpoint is "+auth.Endpoint, http.StatusNotFound)
	}
}

// refuse answers a request that is not allowed, and logs it.
func (h *HTTP) refuse(w http.ResponseWriter, r *http.Request, status int, reason string) {
	h.opts.Log.Warn("request refused", "status", status, "reason", reason,
		"from", r.RemoteAddr, "host", r.Host, "path", r.URL.Path)
	http.Error(w, reason, status)
}

// authenticated returns who sends a request. If that has no valid token, it is answered.
func (h *HTTP) authenticated(w http.ResponseWriter, r *http.Request) (from auth.Identity, ok bool) {
	from, no := auth.Authenticate(r, h.tokens)
	if no != nil {
		h.reject(w, r, no)
	}
	return from, no == nil
}

// reject answers a request that is not accepted because of its token.
func (h *HTTP) reject(w http.ResponseWriter, r *http.Request, no *auth.Rejection) {
	if challenge := h.tokens.Challenge(no, r.URL.EscapedPath()); challenge != "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	if no.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	h.refuse(w, r, no.Status, no.Reason)
}

// unanswered drops the answer to a request that its client has canceled.
func (s *Server) unanswered(call string) {
	s.inbound.Range(func(key, _ any) bool {
		if in := key.(*transport.Inbound); call != "" && in.Call == call {
			in.Stream.Drop()
		}
		return true
	})
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
	if in.Modern && h.server.replica != nil {
		at = h.server.replica.FindCall(in)
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

// passOn passes a request to the replica that must handle it. The zero value is this one.
func (h *HTTP) passOn(in *transport.Inbound, at cluster.Peer) {
	if at != (cluster.Peer{}) {
		h.server.replica.Forward(in, at)
		return
	}
	h.pass(in)
}

// pass passes a request to the SDK, which checks all other headers that repeat what the message says.
func (h *HTTP) pass(in *transport.Inbound) {
	if err := h.server.checkParams(in); err != nil {
		in.Refuse(mcp.CodeHeaderMismatch, err.Error())
		return
	}
	in.Stream = transport.NewResponse(in.W, h.server.limits().KeepAlive)
	defer in.Stream.End()
	in.Open = in.R.Context()
	if in.Session != "" && in.Body != nil {
		in.Call = transport.RequestName(in.Session, jsonx.Get(in.Body, "id"))
		if in.Call == "" && in.Member("method") == "notifications/cancelled" {
			h.server.unanswered(transport.RequestName(in.Session, jsonx.Get(jsonx.Get(in.Body, "params"), "requestId")))
		}
		h.server.inbound.Store(in, nil)
		defer h.server.inbound.Delete(in)
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
