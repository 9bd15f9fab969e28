package serve

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/serve/auth"
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
	// Console are the pages of the console, which needs tokens. A nil Console means that there is none.
	Console *ConsolePages
	// Metrics answers /metrics for clients with a token. A nil Metrics means that there are none.
	Metrics http.HandlerFunc
	// Log receives refused requests at level warn. A nil Log discards them.
	Log *slog.Logger
}

// HTTP serves a [Server] over streamable HTTP: its path decides what answers a request. Create it with
// [Server.HTTP].
type HTTP struct {
	entry
	server   *Server
	opts     HTTPOptions
	endpoint endpoint
	console  *console     // answers /console and what is below, unless it is nil
	logins   http.Handler // answers what is below /login, unless it is nil
	leaving  atomic.Bool  // the health check fails

	lastCheck, checkBefore atomic.Int64 // when the latest two health checks arrived, in ms of Unix time
}

// HTTP returns the handler for HTTP.
func (s *Server) HTTP(opts HTTPOptions) *HTTP {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	e := entry{log: opts.Log}
	switch {
	case opts.OAuth != nil:
		e.tokens = opts.OAuth
		s.calls.claimed.Store(true)
	case opts.Tokens != nil:
		e.tokens = opts.Tokens
	}
	h := &HTTP{entry: e, server: s, opts: opts, endpoint: endpoint{
		entry: e, server: s, oauth: opts.OAuth, loopback: opts.Loopback, handlers: s.newHandlers(),
		slots: transport.Slots{Processors: runtime.GOMAXPROCS(0)},
	}}
	if opts.LoginPage != nil && e.tokens != nil {
		h.logins = &loginPages{entry: e, logins: &s.logins, write: opts.LoginPage}
	}
	if opts.Console != nil {
		h.console = &console{
			entry: e, pages: *opts.Console, scoped: opts.OAuth != nil, byID: map[auth.Hash]browser{},
			cookie: "toolreg-" + strings.ToLower(rand.Text()[:8]), // cookies of other ports of this host have other names
		}
	}
	return h
}

// Server returns an HTTP server with time limits for slow clients.
func (h *HTTP) Server() *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ConnContext: h.endpoint.connections.Opened, ConnState: h.endpoint.connections.Changed,
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
		h.refuse(w, r, forbidden(err.Error()))
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
	case path == "/metrics" && h.opts.Metrics != nil:
		h.WithToken(h.opts.Metrics)(w, r)
	case path == auth.Endpoint:
		h.endpoint.serve(w, r, "")
	case named && profile != "":
		h.endpoint.serve(w, r, profile)
	default:
		http.Error(w, "not found; the MCP endpoint is "+auth.Endpoint, http.StatusNotFound)
	}
}

// WithToken returns a handler that only clients with a token for the whole registry reach: those
// that are bound to a profile must not learn what is outside it.
func (h *HTTP) WithToken(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, no := auth.Authenticate(r, h.tokens)
		switch {
		case no != nil:
			h.refuse(w, r, no)
		case h.server.isBound(from):
			h.refuse(w, r, forbidden("this token is bound to a profile"))
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
		if h.console != nil {
			h.console.visits.CancelOf(func(from auth.Identity) bool {
				now, ok := h.tokens.Renew(from)
				return !ok || !now.Console
			})
		}
		h.endpoint.running.CancelOf(invalid)
		h.server.tasks.EndOf(func(from auth.Identity) bool { return invalid(from.AnyToken()) }, auth.ErrRevoked)
		h.server.sessions.EndOf(invalid)
	}
}
