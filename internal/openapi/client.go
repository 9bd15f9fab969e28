package openapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/tracing"
	"github.com/toolreg/toolreg/internal/webaddr"
)

const (
	maxRedirects   = 5
	maxHeaderBytes = 256 << 10
)

// client sends the requests to an API. Its RoundTrip adds the credentials, and only to requests to
// the API's own origin, so that no redirect takes them elsewhere or brings them back.
type client struct {
	api       settings.API // expanded
	base      string       // address that the settings name for the API; "" means the document's servers
	origin    string       // that gets credentials; "" means none
	version   string
	creds     *secret.Current[credentials]
	transport *http.Transport
	http      *http.Client
	login     Authorizer // nil means none

	mu      sync.Mutex
	secrets []string // of the settings
	tokens  []string // of the last logins, newest first
	mask    *strings.Replacer
}

func newClient(api settings.API, o *Options) (*client, error) {
	c := &client{api: api, base: strings.TrimSuffix(api.URL, "/"), version: cmp.Or(o.Version, "dev")}
	dialer := &webaddr.Dialer{Allow: append([]string{}, o.AllowHosts...)}
	for _, address := range []string{api.Spec, api.URL} {
		if !strings.Contains(address, "://") {
			continue
		}
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errors.New("its address is not an http or https address")
		}
		if u.User != nil || u.Fragment != "" {
			return nil, errors.New("its address has a user or a fragment; use auth to send credentials")
		}
		dialer.Allow = append(dialer.Allow, net.JoinHostPort(u.Hostname(), webaddr.PortOf(u)))
		c.origin = webaddr.Origin(u) // the origin of baseUrl, or else that of the document
	}
	c.transport = webaddr.NewTransport(maxHeaderBytes)
	c.transport.IdleConnTimeout, c.transport.MaxIdleConnsPerHost = 90*time.Second, 8
	dialer.Through(c.transport, o.Proxy)
	c.http = &http.Client{Transport: c, CheckRedirect: c.checkRedirect}
	if api.OAuth != nil && o.Auth != nil {
		c.login = o.Auth(api)
	}
	c.creds = secret.NewCurrent(c.credentialsOf(api, o))
	return c, nil
}

// credentials are what is added to each request.
type credentials struct {
	headers []settings.Pair
	auth    []settings.Auth
}

// credentialsOf returns the credentials of an expanded API, and masks them from now on.
func (c *client) credentialsOf(api settings.API, o *Options) credentials {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.Secrets != nil {
		c.secrets = o.Secrets()
	}
	for _, way := range api.Auth {
		if way.Basic != nil { // the header has both in one
			c.secrets = append(c.secrets, way.Basic.Username+":"+way.Basic.Password)
		}
	}
	c.mask = secret.NewReplacer(slices.Concat(c.secrets, c.tokens))
	return credentials{api.Headers, api.Auth}
}

// canChange reports whether the credentials of an API that is not expanded may change while a process runs.
func canChange(api settings.API) bool {
	return slices.ContainsFunc(api.Headers, func(h settings.Pair) bool { return secret.CanChange(h.Value) }) ||
		slices.ContainsFunc(api.Auth, func(a settings.Auth) bool {
			return secret.CanChange(a.Bearer) || a.APIKey != nil && secret.CanChange(a.APIKey.Value) ||
				a.Basic != nil && (secret.CanChange(a.Basic.Username) || secret.CanChange(a.Basic.Password))
		})
}

// maxTokens is how many recent tokens are masked: concurrent calls may have sent tokens other than
// the last.
const maxTokens = 4

// sends records a token that a response may repeat.
func (c *client) sends(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.tokens, token) {
		c.tokens = append([]string{token}, c.tokens[:min(len(c.tokens), maxTokens-1)]...)
		c.mask = secret.NewReplacer(slices.Concat(c.secrets, c.tokens))
	}
}

// hide masks the credentials in text from the server.
func (c *client) hide(text string) string {
	c.mu.Lock()
	mask := c.mask
	c.mu.Unlock()
	return mask.Replace(text)
}

// hideIn masks the credentials in a body from the server. In JSON they may contain escapes.
func (c *client) hideIn(body []byte) []byte {
	c.mu.Lock()
	none := len(c.secrets)+len(c.api.Auth) == 0
	c.mu.Unlock()
	if none {
		return body
	}
	body = []byte(c.hide(string(body)))
	if bytes.IndexByte(body, '\\') < 0 {
		return body
	}
	if v, err := jsonx.Parse(body, jsonx.Options{}); err == nil && c.hideStrings(v) {
		return v.JSON()
	}
	return body
}

// hideStrings masks the credentials in the strings of a value, and reports whether there
// were any.
func (c *client) hideStrings(v *jsonx.Value) (found bool) {
	if words := v.Text(); c.hide(words) != words {
		v.Token, found = jsonx.Quote(c.hide(words)), true
	}
	for _, item := range v.Items {
		found = c.hideStrings(item) || found
	}
	for i := range v.Members {
		m := &v.Members[i]
		if name := c.hide(m.Name); name != m.Name {
			m.Name, found = name, true
		}
		found = c.hideStrings(m.Value) || found
	}
	return found
}

// checkRedirect follows the redirects of requests that only read. It removes the headers of the
// call at another origin, and refuses an address that repeats a credential.
func (c *client) checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case first.Method != http.MethodGet && first.Method != http.MethodHead:
		return http.ErrUseLastResponse
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case r.URL.Scheme != "http" && r.URL.Scheme != "https":
		return errors.New("the server redirects to an address that is not http or https")
	case first.URL.Scheme == "https" && r.URL.Scheme == "http":
		return errors.New("the server redirects from https to http")
	}
	if webaddr.Origin(r.URL) != webaddr.Origin(first.URL) {
		if address := r.URL.String(); r.URL.User != nil || c.hide(address) != address {
			return errors.New("the server redirects to another host with credentials in the address")
		}
		r.Header = http.Header{"Accept": first.Header["Accept"]}
	}
	return nil
}

// RoundTrip implements [http.RoundTripper] for one request, which may be the result of a
// redirect.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Header.Get("User-Agent") == "" { // a param may be
		r.Header.Set("User-Agent", "toolreg/"+c.version)
	}
	if !c.isOwn(r) {
		return c.transport.RoundTrip(r)
	}
	tracing.Inject(r.Context(), r.Header.Set)
	return c.creds.Send(r, func(r *http.Request, with credentials) (*http.Response, error) {
		r = r.Clone(r.Context())
		with.authenticate(r)
		if c.login == nil {
			return c.transport.RoundTrip(r)
		}
		return c.authorized(r)
	})
}

// isOwn reports whether a request goes to the API's own origin and no other origin redirected it
// there, which could have chosen what is requested.
func (c *client) isOwn(r *http.Request) bool {
	for ; webaddr.Origin(r.URL) == c.origin; r = r.Response.Request {
		if r.Response == nil {
			return true
		}
	}
	return false
}

func (c credentials) authenticate(r *http.Request) {
	for _, h := range c.headers {
		if strings.EqualFold(h.Name, "Host") {
			r.Host = h.Value
			continue
		}
		r.Header.Set(h.Name, h.Value)
	}
	for _, way := range c.auth {
		switch {
		case way.Bearer != "":
			r.Header.Set("Authorization", "Bearer "+way.Bearer)
		case way.Basic != nil:
			r.SetBasicAuth(way.Basic.Username, way.Basic.Password)
		case way.APIKey != nil:
			sendKey(r, way.APIKey)
		}
	}
}

// supplies reports whether the settings' credentials include a header, a cookie or a query
// parameter and go to a server.
func (c *client) supplies(server, in, name string) bool {
	if u, err := url.Parse(server); err != nil || webaddr.Origin(u) != c.origin {
		return false
	}
	isHeader := func(other string) bool { return in == "header" && strings.EqualFold(name, other) }
	return slices.ContainsFunc(c.api.Headers, func(h settings.Pair) bool { return isHeader(h.Name) }) ||
		slices.ContainsFunc(c.api.Auth, func(way settings.Auth) bool {
			return way.APIKey != nil && (way.APIKey.In == in && way.APIKey.Name == name || way.APIKey.In == "header" && isHeader(way.APIKey.Name))
		})
}

func sendKey(r *http.Request, key *settings.APIKey) {
	switch key.In {
	case "header":
		r.Header.Set(key.Name, key.Value)
	case "cookie":
		r.AddCookie(&http.Cookie{Name: key.Name, Value: key.Value})
	default:
		u := *r.URL
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += url.QueryEscape(key.Name) + "=" + url.QueryEscape(key.Value)
		r.URL = &u
	}
}

// maxSends limits how often a request is sent: with a proof that lacks the server's nonce, with a
// token that has expired, and with the renewed one.
const maxSends = 3

// authorized sends a request with the login's token, and again after a refusal if the login then
// has another token or proof.
func (c *client) authorized(r *http.Request) (*http.Response, error) {
	for sends := 1; ; sends++ {
		token, err := c.login.Token(r.Context())
		if r.Context().Value(documentKey{}) != nil && errors.Is(err, registry.ErrNeedsLogin) {
			token, err = "", nil // unless the server says otherwise
		}
		if err != nil {
			return nil, err
		}
		if token != "" {
			if err := c.login.Sign(r, token); err != nil {
				return nil, err
			}
			c.sends(token)
		}
		resp, err := c.transport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		again, err := c.login.Received(r.Context(), token, resp.StatusCode, resp.Header)
		switch {
		case err != nil:
			_ = resp.Body.Close()
			return nil, err
		case !again || sends == maxSends:
			return resp, nil
		}
		_ = resp.Body.Close()
		if r.Body != nil && r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// documentKey marks the request for a document, which may be readable without a login.
type documentKey struct{}

// getDocument sends a GET request for the document.
func (c *client) getDocument(ctx context.Context, address string, header http.Header) (*http.Response, error) {
	ctx = context.WithValue(ctx, documentKey{}, true)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header = header
	r.Header.Set("Accept", "application/json, application/yaml;q=0.9, */*;q=0.5")
	return c.http.Do(r)
}

// failure returns the error for a failure of an API, with the secrets of the settings masked. The
// client may be nil.
func failure(api string, c *client, err error) error {
	if _, ok := errors.AsType[*document.Error](err); ok {
		return err
	}
	reason := webaddr.Explain(err)
	if c != nil {
		reason = c.hide(reason)
	}
	return &registry.Failure{Text: fmt.Sprintf("API %q: %s", api, text.Escape(reason)),
		Kind: registry.ErrSourceFailed, Cause: err}
}
