package serve

import (
	"context"
	"crypto/rand"
	"fmt"
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
	"github.com/toolreg/toolreg/internal/timing"
)

// HTTPOptions configure [Server.HTTP].
type HTTPOptions struct {
	// Tokens are the tokens that clients need. If nil, no token is needed.
	Tokens *auth.Tokens
	// OAuth, if not nil, verifies access tokens that clients need instead of Tokens.
	OAuth *auth.OAuth
	// Loopback says that only this machine can reach the address. Requests for other hosts are then
	// rejected, because web pages can send such requests (DNS rebinding).
	Loopback bool
	// LoginPage writes a page of a login (oauth.per: client). A nil LoginPage means that there are no
	// such logins.
	LoginPage func(io.Writer, LoginPage)
	// Console are the pages of the console, which needs tokens. A nil Console means that there is none.
	Console *ConsolePages
	// Metrics answers /metrics for clients with a token. A nil Metrics means that there are none.
	Metrics http.HandlerFunc
}

// HTTP serves a [Server] over streamable HTTP, and dispatches requests by their path. Create it
// with [Server.HTTP].
type HTTP struct {
	entry
	server   *Server
	opts     HTTPOptions
	endpoint endpoint
	console  *console     // serves /console and the paths below it; may be nil
	logins   http.Handler // serves the paths below /login; may be nil
	leaving  atomic.Bool  // the health check fails

	lastCheck, checkBefore atomic.Int64 // when the last two health checks arrived, as Unix time in ms
}

// HTTP returns the handler for HTTP.
func (s *Server) HTTP(opts HTTPOptions) *HTTP {
	e := entry{log: s.opts.Log}
	switch {
	case opts.OAuth != nil:
		e.tokens = opts.OAuth
		s.calls.claimed.Store(true)
	case opts.Tokens != nil:
		e.tokens = opts.Tokens
	}
	h := &HTTP{entry: e, server: s, opts: opts, endpoint: endpoint{
		entry: e, server: s, oauth: opts.OAuth, loopback: opts.Loopback,
		slots: transport.Slots{Processors: runtime.GOMAXPROCS(0)},
	}}
	h.endpoint.sessions, h.endpoint.modern = s.newHandlers()
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
		ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelDebug),
	}
}

// ServeHTTP implements http.Handler.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 || h.leaving.Load() {
		// net/http ignores a Content-Length next to Transfer-Encoding, but a proxy may have used
		// it; what follows on the connection is then not a request. And a server that shuts down
		// must not close connections on which a request may be arriving.
		header := w.Header()
		w = transport.BeforeAnswer{ResponseWriter: w, Do: func() { header.Set("Connection", "close") }}
	}
	path := r.URL.EscapedPath() // a proxy may have rules for the path as it was sent
	// Health checks over HTTP/1.0 send no Host.
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

// WithToken returns a handler for clients with a token for the whole registry. Clients whose token
// is limited to a profile must not learn what is outside it.
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

// revokeEvery is how often tokens are checked, so that what a removed token had begun ends soon.
const revokeEvery = time.Second

// FollowTokens ends the streams, sessions and calls of tokens that expire, are removed from their
// file or are no longer accepted, until ctx is done. It also follows the keys of access tokens.
func (h *HTTP) FollowTokens(ctx context.Context) {
	if h.tokens == nil {
		return
	}
	if h.opts.OAuth != nil {
		var keys sync.WaitGroup
		keys.Go(func() { h.opts.OAuth.Follow(ctx) })
		defer keys.Wait()
	}
	for timing.Pause(ctx, revokeEvery) == nil {
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

const (
	// noticeTime is how long requests are accepted after the health check begins to fail, so that a
	// load balancer notices.
	noticeTime = 5 * time.Second
	// checksWithin is the time within which the last two health checks must have arrived for a load
	// balancer to be assumed.
	checksWithin = time.Minute
)

// health reports whether new requests are accepted.
func (h *HTTP) health(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	case h.leaving.Load():
		http.Error(w, "shutting down", http.StatusServiceUnavailable)
	default:
		h.checkBefore.Store(h.lastCheck.Swap(time.Now().UnixMilli()))
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "ok\n")
	}
}

// readiness reports whether new requests are accepted and every server that is not optional can be
// reached. A server that was not started yet, or was closed because it was unused, counts as
// reachable. Only clients with a token are told the names of unreachable ones.
func (h *HTTP) readiness(w http.ResponseWriter, r *http.Request) {
	var failed []string // when they were last tried
	for _, source := range sourcesOf(r.Context(), h.server.offers.Common()) {
		if source.server != "" && source.state == sourceFailed && !source.optional {
			failed = append(failed, source.server)
		}
	}
	if len(failed) == 0 || h.leaving.Load() {
		h.health(w, r)
		return
	}
	text := fmt.Sprintf("servers that cannot be reached: %d", len(failed))
	if from, no := auth.Authenticate(r, h.tokens); no == nil && !h.server.isBound(from) {
		text += " (" + strings.Join(failed, ", ") + ")"
	}
	http.Error(w, text, http.StatusServiceUnavailable)
}

// Drain makes the health check fail, gives a load balancer time to notice, and then refuses new
// requests and ends those that wait for notifications. It returns the number of requests and tasks
// that are still running when ctx is done.
func (h *HTTP) Drain(ctx context.Context) int {
	h.leaving.Store(true)
	if time.Since(time.UnixMilli(h.checkBefore.Load())) < checksWithin {
		_ = timing.Pause(ctx, noticeTime)
	}
	h.endpoint.draining.Store(true)
	if h.server.replica != nil {
		h.server.replica.Drain(ctx)
	}
	h.server.stop()
	return h.wait(ctx)
}

// busy reports whether requests or tasks are running, or calls wait here that cannot run again in
// another replica and whose answers arrive through other replicas.
func (h *HTTP) busy() bool {
	return h.endpoint.calls.Load() > 0 || h.server.tasks.Running() > 0 ||
		h.server.replica != nil && h.server.states.OnlyHere("")
}

// wait waits until no request and no task is running, or ctx is done, and returns how many
// still are.
func (h *HTTP) wait(ctx context.Context) int {
	giveUp := func(all bool) {
		if h.server.replica != nil {
			h.server.replica.GiveUpSessions(ctx, all)
		}
	}
	for giveUp(false); h.busy() && ctx.Err() == nil; giveUp(false) {
		_ = timing.Pause(ctx, 10*time.Millisecond)
	}
	giveUp(true)
	return int(h.endpoint.calls.Load()) + h.server.tasks.Running()
}
