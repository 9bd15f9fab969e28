package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/webaddr"
)

const (
	fetchMaxBytes   = 10 << 20
	fetchRedirects  = 5
	fetchHeaderSize = 256 << 10
	// acceptedTypes prefers Markdown from servers that offer it.
	acceptedTypes = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, application/json;q=0.8, text/plain;q=0.8, */*;q=0.5"
)

// Header is one header of a request.
type Header struct{ Name, Value string }

// webPage is the response of a server.
type webPage struct {
	Address string    `json:"address"` // after redirects
	Status  int       `json:"status"`
	Type    string    `json:"type"` // Content-Type
	Retry   string    `json:"retry,omitempty"`
	Body    []byte    `json:"body"`
	Cut     bool      `json:"cut,omitempty"` // the page is longer than Body
	Fetched time.Time `json:"fetched"`

	url     *url.URL // parsed Address
	noStore bool
	cached  bool
}

// admit decides whether a fetch may go on to another address.
type admit func(ctx context.Context, from, to *url.URL) error

// getPage follows redirects itself, because the address of each hop must be checked
// and has its own headers.
func (f *webFetch) getPage(ctx context.Context, u *url.URL, may admit) (*webPage, error) {
	for hop := 0; ; hop++ {
		resp, err := f.send(ctx, u)
		if err != nil {
			return nil, err
		}
		next, err := redirected(u, resp)
		if err == nil && next == nil {
			p, err := f.readPage(resp, u)
			_ = resp.Body.Close() // the body has been read as far as needed
			return p, err
		}
		_ = resp.Body.Close()
		if err == nil && hop == fetchRedirects {
			err = fmt.Errorf("more than %d redirects, the last to %s", fetchRedirects, next.Redacted())
		}
		if err == nil {
			err = may(ctx, u, next)
		}
		if err != nil {
			return nil, err
		}
		u = next
	}
}

// client returns a client that does not follow redirects.
func (f *webFetch) client() *http.Client {
	transport := &http.Transport{ForceAttemptHTTP2: true, DisableKeepAlives: true, MaxResponseHeaderBytes: fetchHeaderSize}
	(&webaddr.Dialer{Allow: f.opts.AllowHosts}).Through(transport, f.opts.Proxy)
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (f *webFetch) send(ctx context.Context, u *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "toolreg/"+cmp.Or(f.opts.Version, "dev"))
	req.Header.Set("Accept", acceptedTypes)
	headers, err := f.headers(ctx, u)
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		if strings.EqualFold(h.Name, "Host") {
			req.Host = h.Value
			continue
		}
		req.Header.Set(h.Name, h.Value)
	}
	return f.client().Do(req)
}

// headers returns the headers from the settings for an address's origin.
func (f *webFetch) headers(ctx context.Context, u *url.URL) ([]Header, error) {
	if f.opts.Headers == nil {
		return nil, nil
	}
	return f.opts.Headers(ctx, webaddr.Origin(u))
}

// redirected returns the address to which a response redirects, or nil if it
// does not redirect.
func redirected(from *url.URL, resp *http.Response) (*url.URL, error) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	location := resp.Header.Get("Location")
	if location == "" {
		return nil, nil
	}
	target, err := from.Parse(location)
	if err != nil {
		return nil, errors.New("the server redirects to an invalid address")
	}
	next, err := parseAddress(target.String())
	if err != nil {
		return nil, fmt.Errorf("the server redirects to an address that %v", err)
	}
	if !staysAt(from.Hostname(), next.Hostname()) {
		return nil, fmt.Errorf(
			"the server redirects to another host, which was not approved; to follow it, fetch %s", next.Redacted())
	}
	if from.Scheme == "https" && next.Scheme == "http" {
		return nil, fmt.Errorf(
			"the server redirects from https to plain http (%s); if you trust it, fetch that address", next.Redacted())
	}
	return next, nil
}

// admitting returns what decides about the redirects of a call. A person who has confirmed an
// address has agreed to others of the same host and port.
func admitting(call registry.Call) admit {
	return func(ctx context.Context, from, to *url.URL) error {
		params, err := jsonx.Parse(call.Params, jsonx.Options{})
		if err != nil {
			return err
		}
		params.Set("url", jsonx.NewString(to.String()))
		if call.Admit == nil {
			err = registry.ErrDenied
		} else {
			err = call.Admit(ctx, params.JSON(), webaddr.Origin(from) == webaddr.Origin(to))
		}
		switch {
		case errors.Is(err, registry.ErrNeedsConfirmation):
			return fmt.Errorf(
				"the server redirects to %s, which needs an approval of its own; to ask for it, fetch that address",
				to.Redacted())
		case err != nil:
			return fmt.Errorf("the server redirects to %s, which is not allowed", to.Redacted())
		}
		return nil
	}
}

// staysAt reports whether a redirect leads to the same host or to a subdomain
// of it. The user approves a host, and a page could send secrets to any other
// host in the address of a redirect.
func staysAt(from, to string) bool {
	from, to = strings.TrimPrefix(webaddr.CanonicalHost(from), "www."), webaddr.CanonicalHost(to)
	_, err := netip.ParseAddr(from)
	isName := err != nil && strings.Contains(from, ".")
	return to == from || isName && strings.HasSuffix(to, "."+from)
}

// readPage reads the body up to the limit. The transport has already decompressed
// the body, so the limit applies to the decompressed size.
func (f *webFetch) readPage(resp *http.Response, u *url.URL) (*webPage, error) {
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, fmt.Errorf("the server uses the content coding %q, which was not requested", coding)
	}
	limit := cmp.Or(f.opts.MaxBytes, fetchMaxBytes)
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading the page: %w", err)
	}
	p := &webPage{
		Address: u.String(), Status: resp.StatusCode, Type: resp.Header.Get("Content-Type"),
		Retry: resp.Header.Get("Retry-After"), Body: body, Fetched: time.Now(), url: u,
		noStore: strings.Contains(strings.ToLower(resp.Header.Get("Cache-Control")), "no-store"),
	}
	if int64(len(body)) > limit {
		p.Body, p.Cut = body[:limit], true
	}
	return p, nil
}
