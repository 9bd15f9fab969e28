package mcpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/toolreg/toolreg/internal/settings"
)

const (
	maxRedirects   = 5
	maxHeaderBytes = 64 << 10
	maxErrorBody   = 4 << 10
	// afterDelete is how long an answer to the request that ends a session is
	// awaited once it is written: nobody needs it.
	afterDelete = 30 * time.Millisecond
	// maxDelete bounds writing that request.
	maxDelete = time.Second
)

// httpGuard is the only way to an HTTP server. It sends the settings' headers to
// the configured origin and nothing to any other, bounds what comes back after
// decompression, and remembers the last refusal for error texts, since the SDK
// keeps the words of the status alone.
type httpGuard struct {
	origin  string // scheme://host:port
	headers http.Header
	limit   *limit // bytes of a body that is no event stream
	base    *http.Transport
	version *atomic.Pointer[string] // negotiated legacy revision, nil before
	auth    Authorizer              // nil: no tokens

	// tokenParam names the query parameter that carries the token in place of
	// the header, "" for none.
	tokenParam string

	mu      sync.Mutex
	refusal *refusal
	sent    string // token of the last request
	login   error  // why there is no token that the server takes
}

// refusal is an answer with an error status, or none at all.
type refusal struct {
	status int    // 0: no answer
	text   string // status line and first line of the body, or the reason
	barred bool   // for want of a login, or of one that allows more
}

func newHTTPGuard(s settings.Server, limit *limit, version *atomic.Pointer[string]) (*httpGuard, string, error) {
	endpoint := s.HTTPURL
	if endpoint == "" {
		endpoint = s.URL
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, "", fmt.Errorf("its URL is no http or https address (%s)", s.Origin)
	}
	g := &httpGuard{origin: origin(u), headers: http.Header{}, limit: limit, version: version}
	for _, h := range s.Headers {
		if !httpguts.ValidHeaderFieldName(h.Name) {
			return nil, "", fmt.Errorf("%s: %q is no name of an HTTP header", h.Origin, h.Name)
		}
		if !httpguts.ValidHeaderFieldValue(h.Value) {
			return nil, "", fmt.Errorf("%s: the value of header %s holds a control character", h.Origin, h.Name)
		}
		g.headers.Add(h.Name, h.Value)
	}
	if u.User != nil && g.headers.Get("Authorization") == "" {
		password, _ := u.User.Password()
		r := http.Request{Header: g.headers}
		r.SetBasicAuth(u.User.Username(), password)
	}
	u.User, u.Fragment = nil, ""
	g.base = &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		MaxResponseHeaderBytes: maxHeaderBytes,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        90 * time.Second,
	}
	return g, u.String(), nil
}

// client returns the HTTP client for the SDK: no cookies, no other origin.
func (g *httpGuard) client() *http.Client {
	return &http.Client{Transport: g, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return g.refuse(fmt.Errorf("more than %d redirects", maxRedirects))
		}
		if origin(r.URL) != g.origin {
			return g.refuse(fmt.Errorf("it redirects to another origin, %s, which gets none of our requests; set that as its URL if you trust it", origin(r.URL)))
		}
		return nil
	}}
}

// RoundTrip implements [http.RoundTripper].
func (g *httpGuard) RoundTrip(r *http.Request) (*http.Response, error) {
	if origin(r.URL) != g.origin {
		return nil, g.refuse(fmt.Errorf("it names an address at another origin, %s; nothing was sent there", origin(r.URL)))
	}
	r = r.Clone(r.Context())
	for name, values := range g.headers {
		r.Header[name] = values
	}
	if v := g.version.Load(); v != nil && r.Header.Get("Mcp-Protocol-Version") == "" {
		r.Header.Set("Mcp-Protocol-Version", *v)
	}
	if g.auth != nil {
		return g.roundTripAuthorized(r)
	}
	return g.send(r)
}

func (g *httpGuard) send(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodDelete {
		return g.roundTripDelete(r)
	}
	resp, err := g.base.RoundTrip(r)
	switch {
	case isListening(r.Context()):
		return resp, err
	case err != nil:
		return nil, g.refuse(err)
	}
	return g.received(resp)
}

func (g *httpGuard) received(resp *http.Response) (*http.Response, error) {
	if id := resp.Header.Get("Mcp-Session-Id"); !isVisible(id) {
		_ = resp.Body.Close()
		return nil, g.refuse(errors.New("its session id holds other than visible ASCII characters"))
	}
	if resp.StatusCode >= 400 {
		head, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		g.note(resp, head)
		resp.Body = limited(resp.Body, io.MultiReader(bytes.NewReader(head), resp.Body), g.limit.load())
		return resp, nil
	}
	// The SDK bounds each event of a stream, which may go on for long.
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = limited(resp.Body, resp.Body, g.limit.load())
	}
	return resp, nil
}

// roundTripDelete tells the server that the session is over and does not wait
// for what it says to that.
func (g *httpGuard) roundTripDelete(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), maxDelete)
	written := make(chan struct{})
	var once sync.Once
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { once.Do(func() { close(written) }) }}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		resp, err := g.base.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, trace)))
		if err == nil {
			_ = resp.Body.Close()
		}
	}()
	select {
	case <-written:
		timer := time.NewTimer(afterDelete)
		defer timer.Stop()
		select {
		case <-ended:
		case <-timer.C:
		}
	case <-ended:
	}
	cancel()
	<-ended
	return &http.Response{StatusCode: http.StatusNoContent, Status: "204 No Content", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

func (g *httpGuard) note(resp *http.Response, body []byte) {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	msg := resp.Status
	if line = cut(strings.TrimSpace(line), 300); line != "" {
		msg += ": " + line
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refusal = &refusal{status: resp.StatusCode, text: msg, barred: wantsLogin(resp)}
}

func (g *httpGuard) refuse(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !errors.Is(err, context.Canceled) {
		g.refusal = &refusal{text: err.Error()}
	}
	return err
}

func (g *httpGuard) lastRefusal() *refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refusal
}

// wantsLogin reports whether an answer is a refusal for want of a login, or of
// one that allows more (RFC 6750, section 3.1).
func wantsLogin(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized ||
		resp.StatusCode == http.StatusForbidden && strings.Contains(strings.Join(resp.Header.Values("WWW-Authenticate"), " "), "insufficient_scope")
}

// barred reports whether the last refusal was for want of a login.
func (g *httpGuard) barred() bool {
	r := g.lastRefusal()
	return r != nil && r.barred
}

func (g *httpGuard) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refusal = nil
}

// limitedBody fails when a body goes over its limit, which io.LimitReader hides.
type limitedBody struct {
	io.Closer
	r     io.Reader
	left  int64
	limit bound
}

func limited(c io.Closer, r io.Reader, limit bound) *limitedBody {
	return &limitedBody{Closer: c, r: r, left: limit.bytes, limit: limit}
}

// Read implements [io.Reader].
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.limit.exceeded("body")
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n - 1, b.limit.exceeded("body")
	}
	return n, err
}

// origin returns scheme://host:port with the port always there.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// isVisible reports whether s is made of the characters that a session id may
// have, 0x21 to 0x7E.
func isVisible(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7E }) < 0
}
