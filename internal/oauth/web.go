package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/oauth2"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/webaddr"
)

const (
	maxBody      = 1 << 20 // bytes of a response
	maxRedirects = 5
	maxAddress   = 8192 // bytes of a URL
	webTimeout   = 15 * time.Second
)

// web connects to authorization servers. After resolving a name, it decides by
// IP address whether to connect: to public addresses, and to hosts that the
// settings name. It is used by one goroutine at a time.
type web struct {
	named    map[string]bool // host names of the settings in lower case
	loopback bool            // the MCP server itself is on this machine
	origin   string          // of the MCP server
	headers  http.Header     // only for this origin: a gateway in front of it may require them
	base     *http.Transport
	client   *http.Client
	status   int    // of the last response
	nonce    string // for proofs, of the last response
}

// newWeb allows private addresses for the hosts of the given URLs, which come
// from the settings. Empty URLs are skipped.
func newWeb(addresses ...string) *web {
	w := &web{named: map[string]bool{}}
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" {
			continue
		}
		w.named[webaddr.CanonicalHost(u.Hostname())] = true
		w.loopback = w.loopback || webaddr.IsLoopback(u.Hostname())
	}
	w.base = webaddr.NewTransport(64 << 10)
	w.base.DialContext = w.dial
	w.client = &http.Client{Timeout: webTimeout, CheckRedirect: w.redirect, Transport: webTransport{w}}
	return w
}

func (w *web) close() { w.base.CloseIdleConnections() }

// webTransport tells the dialer the host of a connection.
type webTransport struct{ *web }

type dialKey struct{}

// dialFor is the target of a connection.
type dialFor struct {
	host  string
	proxy bool // it uses the proxy of the environment; see allowName
}

func (w webTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	proxy, err := w.base.Proxy(r)
	if err != nil {
		return nil, err
	}
	d := dialFor{host: webaddr.CanonicalHost(r.URL.Hostname()), proxy: proxy != nil}
	if d.proxy {
		if err := w.allowName(r.Context(), d.host); err != nil {
			return nil, err
		}
	}
	r = r.Clone(context.WithValue(r.Context(), dialKey{}, d))
	if webaddr.Origin(r.URL) == w.origin { // for each request, so that no redirect takes them elsewhere
		r.Host = cmp.Or(w.headers.Get("Host"), r.Host)
		for name, values := range w.headers {
			if r.Header.Get(name) == "" {
				r.Header[name] = values
			}
		}
	}
	resp, err := w.base.RoundTrip(r)
	if err == nil {
		w.status, w.nonce = resp.StatusCode, takeNonce(resp.Header)
	}
	return resp, err
}

func (w *web) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d, _ := ctx.Value(dialKey{}).(dialFor)
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if !d.proxy {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return w.allow(d.host, at.Addr())
		}
	}
	return dialer.DialContext(ctx, network, address)
}

// allowName resolves a name as a proxy would and checks the addresses, because
// a proxy may reach hosts that we must not. A name that only the proxy can
// resolve must be in the settings.
func (w *web) allowName(ctx context.Context, host string) error {
	if w.named[host] {
		return nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return fmt.Errorf("looking up %q, which the settings do not name: %w", host, err)
	}
	for _, ip := range found {
		if err := w.allow(host, ip); err != nil {
			return err
		}
	}
	return nil
}

// allow refuses an address that is not on the public internet unless the
// settings name its host.
func (w *web) allow(host string, ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	if w.named[host] || w.loopback && ip.IsLoopback() {
		return nil
	}
	if !webaddr.IsPublic(ip) {
		return errPrivate(host)
	}
	return nil
}

// errPrivate is the error about a host that is not on the public internet.
func errPrivate(host string) error {
	return fmt.Errorf("%q is not on the public internet and not named in the settings; if you trust it, set oauth.issuer to it", host)
}

func (w *web) redirect(r *http.Request, via []*http.Request) error {
	switch {
	case via[0].Method != http.MethodGet:
		return http.ErrUseLastResponse // do not send credentials elsewhere
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case via[len(via)-1].URL.Scheme == "https" && r.URL.Scheme != "https":
		return errors.New("a redirect from https to http")
	}
	return w.checkURL(r.URL.String())
}

// checkURL returns an error if a URL from a server must not be used: it must be
// https, or http on this machine.
func (w *web) checkURL(address string) error {
	if len(address) > maxAddress {
		return fmt.Errorf("an address of more than %d characters", maxAddress)
	}
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("%q contains a space or a control character", address)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return fmt.Errorf("%q is not a web address", address)
	case u.User != nil:
		return fmt.Errorf("an address at %s contains a user name", u.Host)
	case u.Scheme == "https", u.Scheme == "http" && webaddr.IsLoopback(u.Hostname()):
	default:
		return fmt.Errorf("%q is neither https nor http on this machine", u.Redacted())
	}
	if webaddr.IsLoopback(u.Hostname()) && !w.loopback {
		return errPrivate(u.Hostname())
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return w.allow(webaddr.CanonicalHost(u.Hostname()), ip)
	}
	return nil
}

// errNotJSON reports a response that is not JSON.
var errNotJSON = errors.New("its answer is not JSON")

func (w *web) getJSON(ctx context.Context, address string) (document, error) {
	if err := w.checkURL(address); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%q is not a web address", address)
	}
	status, data, err := w.do(r)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, webaddr.StatusError(status)
	}
	return decode(data)
}

// do sends a request and reads the response, which must be JSON or, from a token endpoint, a form,
// which becomes an object. data is nil if it is neither.
func (w *web) do(r *http.Request) (status int, data []byte, err error) {
	r.Header.Set("Accept", "application/json")
	resp, err := w.client.Do(r)
	if err != nil {
		return 0, nil, withoutAddress(r.Context(), err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return 0, nil, withoutAddress(r.Context(), err)
	}
	if len(body) > maxBody {
		return 0, nil, fmt.Errorf("the response exceeds %d bytes", maxBody)
	}
	body = text.WithoutMark(body)
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "application/x-www-form-urlencoded" && r.Method == http.MethodPost { // as some token endpoints answer
		members := map[string]string{}
		form, _ := url.ParseQuery(string(body))
		for name := range form {
			members[name] = form.Get(name)
		}
		body, _ = json.Marshal(members) // texts
	}
	if labelled := err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")); !labelled &&
		jsonx.KindOf(body) != jsonx.Object {
		return resp.StatusCode, nil, nil
	}
	return resp.StatusCode, body, nil
}

// withoutAddress removes the URL from an error of the HTTP client, because it
// may contain a secret.
func withoutAddress(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if e, ok := errors.AsType[*url.Error](err); ok && e.Timeout() {
		return fmt.Errorf("no answer within %s", webTimeout)
	}
	return webaddr.Explained(err)
}

// withoutAnswer is withoutAddress for errors of the SDK, which quote the
// response, because that may contain a secret.
func (w *web) withoutAnswer(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return &tokenError{w.status, e.ErrorCode}
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return withoutAddress(ctx, e)
	}
	if w.status >= 300 {
		return webaddr.StatusError(w.status)
	}
	return errors.New("its answer cannot be used")
}

// decode checks that an answer is an object. Its errors name no values, which could be secrets.
func decode(data []byte) (document, error) {
	switch {
	case !jsonx.Valid(data):
		return nil, errNotJSON
	case jsonx.KindOf(data) != jsonx.Object:
		return nil, errors.New("its answer is not a JSON object")
	}
	return data, nil
}

// answered returns the answer to a request that changes something; an error response is a *tokenError.
func answered(status int, data []byte) (document, error) {
	d, err := decode(data)
	switch code := d.text("error"); {
	case code != "": // some servers return errors with status 200
		return nil, &tokenError{status, code}
	case status != http.StatusOK && status != http.StatusCreated:
		return nil, &tokenError{status: status}
	}
	return d, err
}

// document is a JSON object from a server. Members whose type the standards do not allow count as
// missing, because servers make mistakes in members that few clients read.
type document []byte

func (d document) text(name string) string {
	s, _ := jsonx.Text(jsonx.Get(json.RawMessage(d), name))
	return s
}

// words returns the words of a text, or of a list of texts.
func (d document) words(name string) []string {
	raw := jsonx.Get(json.RawMessage(d), name)
	list, ok := jsonx.Elements(raw)
	if !ok {
		list = []json.RawMessage{raw}
	}
	var out []string
	for _, element := range list {
		s, _ := jsonx.Text(element)
		out = append(out, strings.Fields(s)...)
	}
	return out
}

func (d document) flag(name string) bool {
	return strings.Trim(string(jsonx.Get(json.RawMessage(d), name)), `"`) == "true"
}

// number returns a number, which may be written as a string; 0 if it is missing or not positive.
func (d document) number(name string) float64 {
	n, err := strconv.ParseFloat(strings.Trim(string(jsonx.Get(json.RawMessage(d), name)), `"`), 64)
	if err != nil || !(n > 0) {
		return 0
	}
	return min(n, 1<<53)
}

// tokenError is an error response of a token endpoint (RFC 6749 section 5.2).
// Its description is dropped, because it may repeat what was sent.
type tokenError struct {
	status int
	code   string
}

func (e *tokenError) Error() string {
	if e.code == "" {
		return webaddr.StatusError(e.status).Error()
	}
	return fmt.Sprintf("it returned %q", e.code)
}

// mayPass reports whether the same request may succeed later.
func (e *tokenError) mayPass() bool {
	return e.status >= 500 || slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooEarly,
		http.StatusTooManyRequests}, e.status) ||
		slices.Contains([]string{"server_error", "temporarily_unavailable", "slow_down"}, e.code)
}
