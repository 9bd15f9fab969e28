package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/http/httpguts"

	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/webaddr"
)

const (
	maxRedirects   = 5
	maxHeaderBytes = 64 << 10
	// afterDelete is how long to wait for the answer to the request that ends a session.
	// The answer itself is not needed.
	afterDelete = 30 * time.Millisecond
	// maxDelete limits the time for writing that request.
	maxDelete = time.Second
)

// HTTP is the HTTP client for a server, and the [Link] over streamable HTTP; see [NewSSE]
// for the older transport. It sends the headers of the settings to the configured origin
// and nothing to any other, returns the cookies that it gets there, and limits responses after
// decompression. It is safe for concurrent use.
type HTTP struct {
	endpoint string
	origin   string // scheme://host:port
	headers  *secret.Current[http.Header]
	limit    *CurrentLimit // bytes of a body, or of one event of the stream of an answer
	maxEvent int64         // bytes of one event of other streams
	base     *http.Transport
	client   *http.Client // over HTTP.RoundTrip
	tokens   tokens

	mu      sync.Mutex
	session string // id, "" for none
	older   bool   // the session is that of a stream of SSE, without an id
	lost    bool   // the server has ended the session
	stays   bool   // the session outlasts the connection
}

// NewHTTP returns the client for a server whose strings are expanded. limit applies to a body or
// event that answers a request, maxEvent to an event that the server sends on its own, in bytes.
// The jar keeps the server's cookies, by which load balancers find the replica of a session; if
// nil, none are kept.
func NewHTTP(s settings.Server, limit *CurrentLimit, maxEvent int64, jar http.CookieJar) (*HTTP, error) {
	endpoint := cmp.Or(s.HTTPURL, s.URL)
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("its URL is not an http or https address (%s)", s.Origin)
	}
	headers, err := headersOf(s)
	if err != nil {
		return nil, err
	}
	h := &HTTP{origin: webaddr.Origin(u), headers: secret.NewCurrent(headers), limit: limit, maxEvent: maxEvent}
	u.User, u.Fragment = nil, ""
	h.endpoint = u.String()
	h.base = webaddr.NewTransport(maxHeaderBytes)
	h.base.MaxIdleConnsPerHost, h.base.IdleConnTimeout = 4, 90*time.Second
	h.client = &http.Client{Transport: h, CheckRedirect: h.checkRedirect, Jar: jar}
	return h, nil
}

// headersOf returns the headers of a server whose strings are expanded.
func headersOf(s settings.Server) (http.Header, error) {
	headers := http.Header{}
	for _, header := range s.Headers {
		if !httpguts.ValidHeaderFieldName(header.Name) {
			return nil, fmt.Errorf("%s: %q is not a valid HTTP header name", header.Origin, header.Name)
		}
		if !httpguts.ValidHeaderFieldValue(header.Value) {
			return nil, fmt.Errorf("%s: the value of header %s contains a control character",
				header.Origin, header.Name)
		}
		headers.Add(header.Name, header.Value)
	}
	if u, err := url.Parse(cmp.Or(s.HTTPURL, s.URL)); err == nil && u.User != nil && headers.Get("Authorization") == "" {
		password, _ := u.User.Password()
		r := http.Request{Header: headers}
		r.SetBasicAuth(u.User.Username(), password)
	}
	return headers, nil
}

// Reread makes the client repeat requests whose headers the server refuses, with the headers that
// expand returns then, if they differ. Call it before the first request.
func (h *HTTP) Reread(expand func(context.Context) (settings.Server, error)) {
	h.headers.Reread(func(ctx context.Context) (http.Header, error) {
		s, err := expand(ctx)
		if err != nil {
			return nil, err
		}
		return headersOf(s)
	})
}

// post sends a message to a URL. The response has a status that means success.
func (h *HTTP) post(ctx context.Context, address string, m message) (*http.Response, error) {
	body, err := jsonrpc.EncodeMessage(m.Message)
	if err != nil {
		return nil, fmt.Errorf("encoding a message: %w", err)
	}
	var written atomic.Bool
	r, err := http.NewRequestWithContext(webaddr.WhenWritten(ctx, func() { written.Store(true) }),
		http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if m.request != nil {
		for name, value := range m.request.trace {
			r.Header.Set(name, value)
		}
	}
	if m.revision >= FirstModern && m.method != "" {
		r.Header.Set("Mcp-Method", m.method)
		if m.request != nil && m.request.Name != "" {
			r.Header.Set("Mcp-Name", encodeHeader(m.request.Name))
		}
		if m.request != nil {
			maps.Copy(r.Header, m.request.Headers)
		}
	}
	resp, err := h.do(r, m.revision)
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	sent := r.Header.Get("Mcp-Name")
	if ok && refused.Code == mcp.CodeHeaderMismatch && sent != "" && sent != m.request.Name &&
		httpguts.ValidHeaderFieldValue(m.request.Name) { // some servers do not decode it: the Go SDK's, v1.8.0
		r.Header.Set("Mcp-Name", m.request.Name)
		r.Body, _ = r.GetBody() // never fails
		resp, err = h.do(r, m.revision)
	}
	if failed, ok := errors.AsType[*HTTPError](err); ok && failed.Status == 0 {
		failed.MayHaveRun = written.Load()
	}
	if err == nil && m.method == methodInitialize {
		h.mu.Lock()
		h.session = resp.Header.Get(sessionHeader)
		h.mu.Unlock()
	}
	return resp, err
}

// getStream requests the stream of the session's own messages or, if last is set, the rest of any
// stream after the event with that id.
func (h *HTTP) getStream(ctx context.Context, revision, last string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.endpoint, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", eventStreamType)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	return h.do(r, revision)
}

func streamOf(resp *http.Response, err error) (io.ReadCloser, error) {
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || contentType(resp) != eventStreamType {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s, content type %q", resp.Status, contentType(resp))
	}
	return resp.Body, nil
}

// Authorize sends the tokens of a with all requests, in the query parameter
// tokenParam if that is not "". Call it before the first request.
func (h *HTTP) Authorize(a Authorizer, tokenParam string) {
	h.tokens.auth, h.tokens.param = a, tokenParam
}

// HasAuthorization reports whether the settings contain an Authorization
// header.
func (h *HTTP) HasAuthorization() bool { return h.headers.Load().Get("Authorization") != "" }

// SentToken returns the token that a request carried last, "" for none.
func (h *HTTP) SentToken() string {
	if h == nil {
		return ""
	}
	h.tokens.mu.Lock()
	defer h.tokens.mu.Unlock()
	return h.tokens.sent
}

// Stay makes the session outlast the connection, so that another process can continue it.
func (h *HTTP) Stay() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stays = true
}

// Resume continues the session with an id, "" for none. Call it before [Start], and then
// [Session.Continue]. Unless Stay is called, the session ends with the connection.
func (h *HTTP) Resume(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session = id
}

// CloseIdleConnections closes the connections that no request uses.
func (h *HTTP) CloseIdleConnections() { h.base.CloseIdleConnections() }

// deleteSession sends the request that ends the session, and waits only briefly for the answer.
func (h *HTTP) deleteSession(ctx context.Context, revision string) {
	ctx, cancel := context.WithTimeout(ctx, maxDelete)
	defer cancel()
	written := func() { time.AfterFunc(afterDelete, cancel) }
	r, err := http.NewRequestWithContext(webaddr.WhenWritten(ctx, written), http.MethodDelete, h.endpoint, http.NoBody)
	if err != nil {
		return
	}
	if resp, err := h.do(r, revision); err == nil {
		_ = resp.Body.Close()
	}
}

const eventStreamType = "text/event-stream"

// do sends a request within the session. The response has a status that means success.
// Errors are those of [Session.Do].
func (h *HTTP) do(r *http.Request, revision string) (*http.Response, error) {
	session := h.SessionID()
	if session != "" {
		r.Header.Set(sessionHeader, session)
	}
	if revision != "" {
		r.Header.Set("Mcp-Protocol-Version", revision)
	}
	resp, err := h.client.Do(r)
	if err != nil {
		return nil, httpError(err)
	}
	switch {
	case !isVisible(resp.Header.Get(sessionHeader)):
		err = httpError(errors.New("its session id contains characters other than visible ASCII"))
	case resp.StatusCode >= 300:
		refused := refusal(resp)
		refused.Text = h.tokens.mask(resp.Request, refused.Text)
		if err = refused; h.inSession() && refused.losesSession() {
			h.mu.Lock()
			// Some servers answer GET with 404 because they have no stream.
			h.lost = h.lost || r.Method == http.MethodPost
			h.mu.Unlock()
			err = &SessionLostError{Text: refused.Text}
		}
	}
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// SessionID returns the id of the session, "" for none.
func (h *HTTP) SessionID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session
}

// hasLost reports whether a refusal means that the session is lost: since the handshake, the server
// has been replaced by one that speaks other revisions or keeps sessions; or, in an answer with a
// status of success or over SSE, it no longer has the session. h may be nil.
func (h *HTTP) hasLost(err error) bool {
	const serverError, sessionNotFound = -32000, -32001 // SDKs use these codes
	failed, isFailed := errors.AsType[*HTTPError](err)
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case h == nil:
		return false
	case isFailed && failed.Status == http.StatusBadRequest:
		return ok && refused.Code == mcp.CodeUnsupportedProtocolVersion ||
			regexp.MustCompile(`(?i)unsupported protocol version|mcp-session-id|(no valid|missing) session id`).MatchString(failed.body)
	case isFailed || !ok || !h.inSession():
		return false
	case refused.Code != serverError && refused.Code != sessionNotFound && refused.Code != jsonrpc.CodeInvalidRequest:
		return false
	}
	return namesLostSession(refused.Message) ||
		regexp.MustCompile(`(?i)\bserver not initialized\b`).MatchString(refused.Message)
}

// inSession reports whether the server keeps a session for the connection.
func (h *HTTP) inSession() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session != "" || h.older
}

// contentType returns the media type of a body in lower case, without its parameters, which
// may be malformed or repeated.
func contentType(resp *http.Response) string {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// RoundTrip implements [http.RoundTripper] for one request, which may be the result of a
// redirect.
func (h *HTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	if webaddr.Origin(r.URL) != h.origin {
		return nil, fmt.Errorf("it refers to an address at another origin, %s; nothing was sent there",
			webaddr.Origin(r.URL))
	}
	return h.tokens.send(r.Clone(r.Context()), h.roundTrip)
}

// roundTrip sends a request with the headers of the settings.
func (h *HTTP) roundTrip(r *http.Request) (*http.Response, error) {
	return h.headers.Send(r, func(r *http.Request, headers http.Header) (*http.Response, error) {
		r = r.Clone(r.Context())
		cookies := append(slices.Clone(headers["Cookie"]), r.Header["Cookie"]...)
		maps.Copy(r.Header, headers)
		if host := headers.Get("Host"); host != "" {
			r.Host = host
		}
		if len(cookies) > 0 {
			r.Header["Cookie"] = []string{strings.Join(cookies, "; ")}
		}
		resp, err := h.base.RoundTrip(r)
		if err == nil && resp.Header.Get("WWW-Authenticate") == "" { // Amazon API Gateway renames it
			resp.Header["Www-Authenticate"] = resp.Header["X-Amzn-Remapped-Www-Authenticate"]
		}
		return resp, err
	})
}

func (h *HTTP) checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	address := webaddr.Origin(r.URL) + r.URL.EscapedPath()
	switch at := via[0].URL; {
	case at.Scheme == "https" && r.URL.Scheme == "http" && strings.EqualFold(at.Hostname(), r.URL.Hostname()):
		return fmt.Errorf("it redirects to %s, which is not encrypted, so nothing is sent there; a proxy may hide from it that it is reached by https: try %s as the server's URL",
			address, (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: r.URL.Path}).String())
	case webaddr.Origin(r.URL) != h.origin:
		return fmt.Errorf("it redirects to another origin, %s, to which toolreg sends nothing; if you trust it, set it as the server's URL", address)
	case r.Method != via[0].Method: // the client drops the message
		return fmt.Errorf("it redirects with status %d, which loses the message, to %s; set that as the server's URL",
			r.Response.StatusCode, address)
	}
	return nil
}
