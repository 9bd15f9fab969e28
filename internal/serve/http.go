package serve

import (
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolreg/toolreg/internal/serve/auth"
)

const (
	// headerTime is the time limit for the headers of a request.
	headerTime = 10 * time.Second
)

// HTTPOptions configure [Server.HTTP].
type HTTPOptions struct {
	// Tokens are the tokens that clients need; nil means that no token is
	// needed.
	Tokens *auth.Tokens
	// OAuth knows the access tokens that clients need, in place of Tokens; nil: Tokens does.
	OAuth *auth.OAuth
	// Loopback says that only this machine can reach the address. Requests for other
	// hosts are then rejected, because web pages can send such requests (DNS rebinding).
	Loopback bool
	// LoginPage writes a page of a login (oauth.per: client). nil: there are no such logins.
	LoginPage func(io.Writer, LoginPage)
	// Log receives refused requests at level warn. nil: none.
	Log *slog.Logger
}

// HTTP serves a [Server] over streamable HTTP. Create it with [Server.HTTP].
type HTTP struct {
	server      *Server
	opts        HTTPOptions
	tokens      auth.Verifier // nil: clients need none
	sessions    http.Handler  // of the SDK, for revisions before 2026-07-28
	modern      http.Handler  // of the SDK, without sessions
	checks      healthChecks
	leaving     atomic.Bool // the health check fails
	draining    atomic.Bool // new requests are refused
	connections connections
	bodies      bodies
	slots       slots
	requests    auth.Running
	calls       atomic.Int64     // number of running POST requests
	metrics     http.HandlerFunc // of /metrics; nil: there is none
	console     http.HandlerFunc // of /console and below; nil: there is none
	browsers    browsers
	visits      auth.Running // to the console
}

// HTTP returns the handler for HTTP.
func (s *Server) HTTP(opts HTTPOptions) *HTTP {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	h := &HTTP{server: s, opts: opts, slots: slots{Processors: runtime.GOMAXPROCS(0)}}
	switch {
	case opts.OAuth != nil:
		h.tokens = opts.OAuth
		s.claimed.Store(true)
	case opts.Tokens != nil:
		h.tokens = opts.Tokens
	}
	pick := func(*http.Request) *mcp.Server { return s.sdk }
	o := mcp.StreamableHTTPOptions{Logger: s.opts.Messages, MaxRequestBodyBytes: MaxBody, DisableLocalhostProtection: true}
	h.sessions = withInbound(mcp.NewStreamableHTTPHandler(pick, &o))
	o.Stateless, o.PropagateRequestCancellation = true, true
	h.modern = withInbound(mcp.NewStreamableHTTPHandler(pick, &o))
	return h
}

// Server returns an HTTP server with time limits for slow clients.
func (h *HTTP) Server() *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ConnContext: h.connections.Opened, ConnState: h.connections.Changed,
		ErrorLog: slog.NewLogLogger(h.opts.Log.Handler(), slog.LevelDebug)}
}

// ServeHTTP implements http.Handler.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 || h.leaving.Load() {
		// net/http ignores a Content-Length next to Transfer-Encoding, but a proxy may
		// have used it: then what follows on the connection is not a request. And a
		// server that shuts down must not close connections on which a request may be
		// arriving.
		header := w.Header()
		w = beforeAnswer{w, func() { header.Set("Connection", "close") }}
	}
	path := r.URL.EscapedPath()                                                                                          // a proxy may have rules for the path as it is spelled
	if err := checkOrigin(r, h.opts.Loopback); err != nil && (path != "/healthz" && path != "/readyz" || r.Host != "") { // checks with HTTP/1.0 name no host
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
	h.opts.Log.Warn("request refused", "status", status, "reason", reason, "from", r.RemoteAddr, "host", r.Host, "path", r.URL.Path)
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
