package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/serve/cluster"
)

const (
	// headerTime is the time limit for the headers of a request.
	headerTime = 10 * time.Second
	// bodyTime is the time limit for the body of a request.
	bodyTime = 60 * time.Second
	// maxBody is the maximum size of a request's body.
	maxBody = 16 << 20
	// endpoint is the path of the MCP endpoint.
	endpoint = "/mcp"
)

// HTTPOptions configure [Server.HTTP].
type HTTPOptions struct {
	// Tokens are the tokens that clients need; nil means that no token is
	// needed.
	Tokens *Tokens
	// OAuth knows the access tokens that clients need, in place of Tokens; nil: Tokens does.
	OAuth *OAuth
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
	tokens      tokens                     // nil: clients need none
	sessions    *mcp.StreamableHTTPHandler // revisions before 2026-07-28
	modern      *mcp.StreamableHTTPHandler // without sessions
	checks      healthChecks
	leaving     atomic.Bool // the health check fails
	draining    atomic.Bool // new requests are refused
	connections connections
	bodies      bodies
	slots       slots
	requests    requests
	calls       atomic.Int64 // number of running POST requests
	serial      atomic.Int64 // of the last request that was passed to the SDK
	bodyTime    time.Duration
	metrics     http.HandlerFunc // of /metrics; nil: there is none
	console     http.HandlerFunc // of /console and below; nil: there is none
	browsers    browsers
	visits      requests // to the console
}

// inboundHeader is added to requests that are passed to the SDK. Its value is the key of the
// request in [Server].inbound.
const inboundHeader = "Toolreg-Inbound"

// HTTP returns the handler for HTTP.
func (s *Server) HTTP(opts HTTPOptions) *HTTP {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	h := &HTTP{server: s, opts: opts, bodyTime: bodyTime, slots: slots{Processors: runtime.GOMAXPROCS(0)}}
	switch {
	case opts.OAuth != nil:
		h.tokens = opts.OAuth
		s.claimed.Store(true)
	case opts.Tokens != nil:
		h.tokens = opts.Tokens
	}
	pick := func(*http.Request) *mcp.Server { return s.sdk }
	o := mcp.StreamableHTTPOptions{Logger: s.opts.Messages, MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true}
	h.sessions = mcp.NewStreamableHTTPHandler(pick, &o)
	o.Stateless, o.PropagateRequestCancellation = true, true
	h.modern = mcp.NewStreamableHTTPHandler(pick, &o)
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
		w = lastAnswer{w}
	}
	path := r.URL.EscapedPath()                                                                           // a proxy may have rules for the path as it is spelled
	if err := h.checkOrigin(r); err != nil && (path != "/healthz" && path != "/readyz" || r.Host != "") { // checks with HTTP/1.0 name no host
		h.refuse(w, r, http.StatusForbidden, err.Error())
		return
	}
	if h.console != nil && (path == ConsolePath || strings.HasPrefix(path, ConsolePath+"/")) {
		h.console(w, r)
		return
	}
	if h.opts.OAuth != nil && h.opts.OAuth.isMetadata(path) {
		h.opts.OAuth.serveMetadata(w, r)
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
	case endpoint:
		h.protocol(w, r, "")
	case "/metrics":
		if h.metrics != nil {
			h.metrics(w, r)
			return
		}
		fallthrough
	default:
		if profile, ok := strings.CutPrefix(path, endpoint+"/"); ok && profile != "" {
			h.protocol(w, r, profile)
			return
		}
		http.Error(w, "not found; the MCP endpoint is "+endpoint, http.StatusNotFound)
	}
}

// lastAnswer closes the connection after the response, whatever its handler does.
type lastAnswer struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (l lastAnswer) WriteHeader(status int) {
	l.Header().Set("Connection", "close")
	l.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (l lastAnswer) Write(p []byte) (int, error) {
	l.Header().Set("Connection", "close") // has no effect after WriteHeader
	return l.ResponseWriter.Write(p)
}

// Unwrap returns the wrapped writer to http.ResponseController.
func (l lastAnswer) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// refuse answers a request that is not allowed, and logs it.
func (h *HTTP) refuse(w http.ResponseWriter, r *http.Request, status int, reason string) {
	h.opts.Log.Warn("request refused", "status", status, "reason", reason, "from", r.RemoteAddr, "host", r.Host, "path", r.URL.Path)
	http.Error(w, reason, status)
}

// checkOrigin rejects requests from web pages of other origins, and requests for a host
// whose name was made to resolve to this machine (DNS rebinding).
func (h *HTTP) checkOrigin(r *http.Request) error {
	if h.opts.Loopback && !isLoopback(r.Host) {
		return errors.New("forbidden: this server accepts only requests for localhost")
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return errors.New("forbidden: requests from web pages of other origins are refused")
		}
	}
	return nil
}

func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// protocol authenticates a request and passes it to the SDK. profile is the one that the
// address names; "" if it names none.
func (h *HTTP) protocol(w http.ResponseWriter, r *http.Request, profile string) {
	from, ok := h.authenticated(w, r)
	if !ok {
		return
	}
	if from.profile, ok = h.server.profileFor(from, profile); !ok {
		h.refuse(w, r, http.StatusNotFound, "not found: there is no such profile, or not for this client")
		return
	}
	from.base = h.baseOf(r)
	modern := isModern(r)
	if modern {
		r.Header.Del("Mcp-Session-Id") // the revision has no sessions
	}
	id := r.Header.Get("Mcp-Session-Id")
	var at place
	if id != "" {
		var err error
		if at, err = h.locate(r.Context(), id, from); err != nil {
			h.storeAway(w, err)
			return
		}
		if !at.found {
			http.Error(w, "session not found", http.StatusNotFound)
			return
		}
	}
	if err := checkHeaders(r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, done := h.requests.add(context.WithValue(r.Context(), identityKey{}, from), from)
	defer done()
	r = r.WithContext(ctx)
	if r.Method == http.MethodPost {
		h.post(w, r, from, modern, id, at.holder)
		return
	}
	h.pass(w, r, from, modern, id, at.holder)
}

// post reads a message and passes it to the SDK when it is its client's turn.
func (h *HTTP) post(w http.ResponseWriter, r *http.Request, from identity, modern bool, id string, at cluster.Peer) {
	draining := h.draining.Load()
	if !draining {
		h.calls.Add(1)
		defer h.calls.Add(-1)
	}
	body, status, err := h.wholeBody(w, r, from.name)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	if draining && (modern || id == "" || jsonx.Get(body, "id") != nil && jsonx.Get(body, "method") != nil || jsonx.KindOf(body) != jsonx.Object) { // no answer for a running call, and no cancellation
		w.Header().Set("Retry-After", "1")
		http.Error(w, "shutting down", http.StatusServiceUnavailable)
		return
	}
	done, err := h.slots.Take(r.Context(), from.name, cmp.Or(id, r.RemoteAddr))
	if err != nil {
		return // the client is gone
	}
	defer done()
	if !sameRevision(modern, body) {
		refuseRevision(w, body)
		return
	}
	if modern && !sameTask(nameOf(r.Header), body) {
		refuseMessage(w, body, mcp.CodeHeaderMismatch, "the header Mcp-Name and the message name different tasks")
		return
	}
	if err := checkBody(body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if no := h.permitCalls(r.Context(), from, body); no != nil {
		h.reject(w, r, no)
		return
	}
	if method, _ := jsonx.Text(jsonx.Get(body, "method")); !modern && id == "" && method != "" && method != "initialize" {
		refuseMessage(w, body, jsonrpc.CodeInvalidRequest, "the header Mcp-Session-Id is missing: a session begins with initialize, and revision "+firstModern+" needs the header Mcp-Protocol-Version")
		return
	}
	if !h.admit(r.Context(), from.name, modern, id, body) {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many clients (serve.maxClients)", http.StatusServiceUnavailable)
		return
	}
	if modern {
		at = h.whereIs(r.Context(), body, from)
	} else {
		body = withTask(body)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.pass(w, r, from, modern, id, at)
}

// admit reports whether the limit for clients permits a request. A new session takes the
// place of an unused one, if there is one.
func (h *HTTP) admit(ctx context.Context, name string, modern bool, id string, body json.RawMessage) bool {
	switch {
	case modern:
		return h.connections.Admit(ctx, name, h.server.limits().MaxClients)
	case id != "":
		return true
	}
	method, _ := jsonx.Text(jsonx.Get(body, "method"))
	ended, ok := h.server.sessions.makeRoom(name, h.server.limits().MaxClients, method == "initialize")
	if ended != nil {
		h.server.closing.Go(func() { _ = ended.Close() })
	}
	return ok
}

// pass passes a request to the SDK, or to the replica that must handle it; zero is this one.
func (h *HTTP) pass(w http.ResponseWriter, r *http.Request, from identity, modern bool, id string, at cluster.Peer) {
	if at != (cluster.Peer{}) {
		h.passOn(w, r, from, modern, id, at)
		return
	}
	decodeName(r.Header)
	stream := newSteady(w, h.server.limits().KeepAlive)
	defer stream.end()
	in := &inbound{stream: stream, from: from, open: r.Context()}
	if id != "" && r.Method == http.MethodPost {
		body, _ := io.ReadAll(r.Body) // it was read before
		r.Body = io.NopCloser(bytes.NewReader(body))
		in.call = requestName(id, jsonx.Get(body, "id"))
		if method, _ := jsonx.Text(jsonx.Get(body, "method")); method == "notifications/cancelled" && in.call == "" {
			h.server.unanswered(requestName(id, jsonx.Get(jsonx.Get(body, "params"), "requestId")))
		}
	}
	key := strconv.FormatInt(h.serial.Add(1), 10)
	h.server.inbound.Store(key, in)
	defer h.server.inbound.Delete(key)
	r.Header.Set(inboundHeader, key)
	w = stream
	if modern {
		h.modern.ServeHTTP(w, r)
		return
	}
	if id != "" {
		done, ok := h.server.sessions.request(id, from, r.Method == http.MethodGet)
		if !ok { // the SDK may still be closing it, and would not answer
			http.Error(w, "session not found", http.StatusNotFound)
			return
		}
		defer done()
	}
	if adopted := h.server.sessions.adopted(id); adopted != nil {
		h.serveAdopted(w, r, id, adopted)
		return
	}
	if r.Method == http.MethodDelete {
		h.server.sessions.end(id)
	}
	h.sessions.ServeHTTP(w, r)
}

// isModern reports whether a request is of a revision without sessions.
func isModern(r *http.Request) bool { return r.Header.Get("Mcp-Protocol-Version") >= firstModern }

// sameRevision reports whether a message and the header of its request agree on whether
// the revision has sessions.
func sameRevision(modern bool, body json.RawMessage) bool {
	inBody, ok := jsonx.Text(jsonx.Get(jsonx.Get(jsonx.Get(body, "params"), "_meta"), mcp.MetaKeyProtocolVersion))
	return !ok || inBody >= firstModern == modern
}

// refuseRevision answers a message whose revision differs from that of its header.
func refuseRevision(w http.ResponseWriter, body json.RawMessage) {
	refuseMessage(w, body, mcp.CodeHeaderMismatch, "the header Mcp-Protocol-Version and the message name different revisions of the protocol")
}

// refuseMessage answers a message that does not agree with the headers of its request.
func refuseMessage(w http.ResponseWriter, body json.RawMessage, code int64, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": jsonx.Get(body, "id"), "error": jsonrpc.Error{
		Code: code, Message: reason}})
}

// decodeName decodes the header Mcp-Name, because the SDK does not.
func decodeName(h http.Header) {
	if h.Get("Mcp-Name") != "" {
		h.Set("Mcp-Name", nameOf(h))
	}
}

// nameOf returns the header Mcp-Name, decoded.
func nameOf(h http.Header) string {
	if name, ok := strings.CutPrefix(h.Get("Mcp-Name"), "=?base64?"); ok {
		if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(name, "?=")); err == nil {
			return string(decoded)
		}
	}
	return h.Get("Mcp-Name")
}

// checkHeaders rejects requests that a proxy in front of the server may have interpreted
// differently.
func checkHeaders(r *http.Request) error {
	for _, name := range []string{"Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Content-Type"} {
		if len(r.Header.Values(name)) > 1 {
			return fmt.Errorf("the header %s is given more than once", name)
		}
	}
	return nil
}

// wholeBody reads the body of a request within its limits.
func (h *HTTP) wholeBody(w http.ResponseWriter, r *http.Request, name string) ([]byte, int, error) {
	errLarge := errors.New("the request is larger than 16 MiB")
	if r.ContentLength > maxBody {
		return nil, http.StatusRequestEntityTooLarge, errLarge
	}
	timing := http.NewResponseController(w)
	_ = timing.SetReadDeadline(time.Now().Add(h.bodyTime))
	ctx, cancel := context.WithTimeoutCause(r.Context(), h.bodyTime, os.ErrDeadlineExceeded)
	defer cancel()
	body, err := h.bodies.Read(ctx, name, http.MaxBytesReader(w, r.Body, maxBody))
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil:
		_ = timing.SetReadDeadline(time.Time{})
		return body, 0, nil
	case tooLarge:
		return nil, http.StatusRequestEntityTooLarge, errLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout, fmt.Errorf("the request was not received within %s", h.bodyTime)
	}
	return nil, http.StatusBadRequest, errors.New("the request body ended early")
}
