package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/http/httpguts"

	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/webaddr"
)

const (
	maxRedirects   = 5
	maxHeaderBytes = 64 << 10
	maxErrorBody   = 4 << 10
	// afterDelete is how long to wait for the answer to the request that ends a session.
	// The answer itself is not needed.
	afterDelete = 30 * time.Millisecond
	// maxDelete limits the time for writing that request.
	maxDelete = time.Second
)

// HTTP is the only way to a server over HTTP. It sends the settings' headers to
// the configured origin and nothing to any other, limits what comes back after
// decompression, and remembers refusals for error texts, since the SDK keeps only
// the text of the status. It is safe for concurrent use.
type HTTP struct {
	endpoint   string
	origin     string // scheme://host:port
	headers    http.Header
	limit      *CurrentLimit // bytes of a body that is not an event stream
	base       *http.Transport
	streamable bool                   // not SSE
	version    atomic.Pointer[string] // negotiated legacy revision, nil until then

	auth       Authorizer // nil: no tokens
	tokenParam string     // the query parameter that carries the token instead of the header, "" for none

	mu      sync.Mutex
	refusal *Refusal // the last one of a request without an exchange
	sent    string   // token of the last request
	login   error    // why there is no token that the server accepts
}

// Refusal says why a request failed: an answer with an error status, or no answer at all.
type Refusal struct {
	Status int    // 0: no answer
	Text   string // status line and first line of the body, or the reason

	needsLogin bool // because a login, or one with more permissions, is needed
}

// NewHTTP returns the HTTP side of a server whose strings are expanded, over
// streamable HTTP or SSE. limit applies to a body that is not an event stream.
func NewHTTP(s settings.Server, streamable bool, limit *CurrentLimit) (*HTTP, error) {
	endpoint := s.HTTPURL
	if endpoint == "" {
		endpoint = s.URL
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("its URL is not an http or https address (%s)", s.Origin)
	}
	h := &HTTP{origin: webaddr.Origin(u), headers: http.Header{}, limit: limit, streamable: streamable}
	for _, header := range s.Headers {
		if !httpguts.ValidHeaderFieldName(header.Name) {
			return nil, fmt.Errorf("%s: %q is not a valid HTTP header name", header.Origin, header.Name)
		}
		if !httpguts.ValidHeaderFieldValue(header.Value) {
			return nil, fmt.Errorf("%s: the value of header %s contains a control character", header.Origin, header.Name)
		}
		h.headers.Add(header.Name, header.Value)
	}
	if u.User != nil && !h.HasAuthorization() {
		password, _ := u.User.Password()
		r := http.Request{Header: h.headers}
		r.SetBasicAuth(u.User.Username(), password)
	}
	u.User, u.Fragment = nil, ""
	h.endpoint = u.String()
	h.base = &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		MaxResponseHeaderBytes: maxHeaderBytes,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        90 * time.Second,
	}
	return h, nil
}

// Transport returns the SDK's transport over h. maxEvent is the bytes of one
// event.
func (h *HTTP) Transport(maxEvent int64) mcp.Transport {
	if !h.streamable {
		return &mcp.SSEClientTransport{Endpoint: h.endpoint, HTTPClient: h.client(), MaxEventSize: int(maxEvent)}
	}
	return &mcp.StreamableClientTransport{
		Endpoint: h.endpoint, HTTPClient: h.client(), MaxEventSize: int(maxEvent),
		MaxRetries: 2, DisableStandaloneSSE: true, // listen.go opens that stream
	}
}

// CloseIdleConnections closes the connections that no request uses.
func (h *HTTP) CloseIdleConnections() { h.base.CloseIdleConnections() }

// client returns the HTTP client for the SDK: no cookies, no other origin.
func (h *HTTP) client() *http.Client {
	return &http.Client{Transport: h, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return h.refuse(r, fmt.Errorf("more than %d redirects", maxRedirects))
		}
		if webaddr.Origin(r.URL) != h.origin {
			return h.refuse(r, fmt.Errorf("it redirects to another origin, %s, to which toolreg sends nothing; if you trust it, set it as the server's URL", webaddr.Origin(r.URL)))
		}
		return nil
	}}
}

// RoundTrip implements [http.RoundTripper].
func (h *HTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	if webaddr.Origin(r.URL) != h.origin {
		return nil, h.refuse(r, fmt.Errorf("it refers to an address at another origin, %s; nothing was sent there", webaddr.Origin(r.URL)))
	}
	r = r.Clone(r.Context())
	maps.Copy(r.Header, h.headers)
	if v := h.version.Load(); v != nil && r.Header.Get("Mcp-Protocol-Version") == "" {
		r.Header.Set("Mcp-Protocol-Version", *v)
	}
	resp, err := h.sendAuthorized(r)
	if err != nil {
		return nil, err
	}
	return h.apart(r, resp), nil
}

func (h *HTTP) send(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodDelete {
		return h.sendDelete(r)
	}
	x := exchangeOf(r.Context())
	x.mayRun(r.Method == http.MethodPost, true)
	resp, err := h.base.RoundTrip(r)
	switch {
	case isListening(r.Context()):
		return resp, err
	case err != nil:
		return nil, h.refuse(r, err)
	}
	x.mayRun(r.Method == http.MethodPost, resp.StatusCode < 400)
	return h.received(r, resp)
}

func (h *HTTP) received(r *http.Request, resp *http.Response) (*http.Response, error) {
	if id := resp.Header.Get("Mcp-Session-Id"); !isVisible(id) {
		_ = resp.Body.Close()
		return nil, h.refuse(r, errors.New("its session id contains characters other than visible ASCII"))
	}
	if resp.StatusCode >= 400 {
		head, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		h.noteRefusal(r, resp, head)
		resp.Body = limited(resp.Body, io.MultiReader(bytes.NewReader(head), resp.Body), h.limit.Load())
		return resp, nil
	}
	// A stream may go on for long, so that each of its events is limited.
	if contentType(resp) == eventStreamType {
		resp.Body = h.messages(r, resp.Body)
	} else {
		resp.Body = limited(resp.Body, &withoutMark{r: bufio.NewReader(resp.Body)}, h.limit.Load())
	}
	return resp, nil
}

const eventStreamType = "text/event-stream"

// contentType returns the media type of a body without its parameters.
func contentType(resp *http.Response) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind
}

// sendDelete sends the request that ends the session, and waits only briefly for the
// answer.
func (h *HTTP) sendDelete(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), maxDelete)
	written := signal{c: make(chan struct{})}
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { written.give() }}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		resp, err := h.base.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, trace)))
		if err == nil {
			_ = resp.Body.Close()
		}
	}()
	select {
	case <-written.c:
		waitFor(ended, afterDelete)
	case <-ended:
	}
	cancel()
	<-ended
	return &http.Response{StatusCode: http.StatusNoContent, Status: "204 No Content", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// noteRefusal remembers an answer with an error status.
func (h *HTTP) noteRefusal(r *http.Request, resp *http.Response, body []byte) {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	msg := resp.Status
	if line = text.Valid(text.Head(strings.TrimSpace(line), 300)); line != "" {
		msg += ": " + line
	}
	h.remember(r, &Refusal{Status: resp.StatusCode, Text: msg, needsLogin: wantsLogin(resp)})
}

func (h *HTTP) refuse(r *http.Request, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		h.remember(r, &Refusal{Text: "it closed the connection in the middle of an exchange"})
	default:
		h.remember(r, &Refusal{Text: err.Error()})
	}
	return err
}

// remember keeps a refusal in the exchange of the request, so that it explains no other
// request, or else for LastRefusal.
func (h *HTTP) remember(r *http.Request, refusal *Refusal) {
	refusal.Text = h.withoutToken(r, refusal.Text)
	if x := exchangeOf(r.Context()); x != nil {
		x.refuse(refusal)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusal = refusal
}

// LastRefusal returns the last refusal during the handshake, nil if there was none
// since the last ForgetRefusal.
func (h *HTTP) LastRefusal() *Refusal {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refusal
}

// wantsLogin reports whether an answer refuses a request because a login, or
// one with more permissions, is needed (RFC 6750, section 3.1).
func wantsLogin(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized ||
		resp.StatusCode == http.StatusForbidden && strings.Contains(strings.Join(resp.Header.Values("WWW-Authenticate"), " "), "insufficient_scope")
}

// needsLogin reports whether the last refusal was because a login is needed.
func (h *HTTP) needsLogin() bool {
	r := h.LastRefusal()
	return r != nil && r.needsLogin
}

// ForgetRefusal forgets the last refusal; call it when a later request has
// succeeded.
func (h *HTTP) ForgetRefusal() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusal = nil
}
