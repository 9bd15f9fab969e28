package webaddr

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toolreg/toolreg/internal/text"
)

// Dialer connects to public addresses, and to any address of the allowed hosts.
// It checks the address that is actually dialed, after name resolution and
// redirects, so that DNS rebinding has no effect.
type Dialer struct {
	Allow []string // hosts, or host:port
}

// Dial connects like [net.Dialer.DialContext]. The error may be a *BlockedError.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var nd net.Dialer
	if !d.allows(host, port) {
		nd.Control = func(network, address string, _ syscall.RawConn) error {
			if !mayDial(network, address) {
				at, _, _ := net.SplitHostPort(address)
				return &BlockedError{Host: host, Port: port, Address: at}
			}
			return nil
		}
	}
	return nd.DialContext(ctx, network, address)
}

// mayDial reports whether an address that is about to be dialed is public.
func mayDial(network, address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && (network == "tcp4" || network == "tcp6") && IsPublic(at.Addr())
}

// Through makes a transport dial with d, and go through the proxy that a function returns for an address, if
// any. An address that is reached through a proxy cannot be checked when it is dialed, so it is checked before, as is
// that of the proxy itself, which may be dialed; a name that only the proxy can resolve is left to it.
func (d *Dialer) Through(t *http.Transport, proxy func(*url.URL) (*url.URL, error)) {
	t.DialContext, t.OnProxyConnectResponse = d.Dial, ProxyAnswer
	if proxy == nil {
		return
	}
	guard := &Dialer{Allow: slices.Clone(d.Allow)}
	for _, scheme := range []string{"http", "https"} {
		if p, err := proxy(&url.URL{Scheme: scheme, Host: "proxy.invalid"}); err == nil && p != nil {
			d.Allow = append(d.Allow, net.JoinHostPort(p.Hostname(), PortOf(p)))
		}
	}
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		p, err := proxy(r.URL)
		if err != nil || p == nil && !d.allows(r.URL.Hostname(), PortOf(r.URL)) {
			return nil, err
		}
		return p, guard.CheckHost(r.Context(), r.URL)
	}
}

// allows reports whether an entry of fetch.allowHosts matches host and port.
func (d *Dialer) allows(host, port string) bool {
	host = CanonicalHost(host)
	for _, entry := range d.Allow {
		if CanonicalHost(entry) == host {
			return true
		}
		h, p, err := net.SplitHostPort(entry)
		if err == nil && CanonicalHost(h) == host && samePort(p, port) {
			return true
		}
	}
	return false
}

// samePort compares ports as numbers.
func samePort(a, b string) bool {
	n, err := strconv.ParseUint(a, 10, 16)
	m, other := strconv.ParseUint(b, 10, 16)
	return err == nil && other == nil && n == m
}

// isNumeric reports whether a host is no name for some resolvers, but an address in an old
// notation, such as 127.1, 2130706433 and 0x7f000001. None of them is a name of the public
// internet, whose last labels are not numbers.
func isNumeric(host string) bool {
	host = CanonicalHost(host)
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last != "" && strings.Trim(last, "0123456789") == "" ||
		strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == ""
}

// PortOf returns the port of a URL, or the default of its scheme.
func PortOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	case u.Scheme == "socks5" || u.Scheme == "socks5h":
		return "1080"
	}
	return "80"
}

// CheckHost rejects a host that resolves to an address that Dial would reject, for a
// request that a proxy makes. A host that cannot be resolved is left to the proxy, unless the
// proxy may read it as an address.
func (d *Dialer) CheckHost(ctx context.Context, u *url.URL) error {
	host, port := u.Hostname(), PortOf(u)
	if d.allows(host, port) {
		return nil
	}
	if _, err := netip.ParseAddr(host); err != nil && isNumeric(host) {
		return &BlockedError{Host: host, Port: port, Address: host}
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil // the proxy may be able to resolve it
	}
	for _, a := range addresses {
		if a = a.Unmap(); !IsPublic(a) {
			return &BlockedError{Host: host, Port: port, Address: a.String()}
		}
	}
	return nil
}

// NewTransport returns a transport that uses the proxy of the environment, and reads headers of at most so many bytes.
func NewTransport(maxHeader int64) *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, OnProxyConnectResponse: ProxyAnswer,
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: maxHeader}
}

// maxRedirects is how many redirects [WithinOrigin] follows.
const maxRedirects = 5

// WithinOrigin is the CheckRedirect of a client. It refuses redirects to another origin, which would get the headers
// and could answer in place of the first one.
func WithinOrigin(r *http.Request, via []*http.Request) error {
	switch {
	case Origin(r.URL) != Origin(via[0].URL):
		return fmt.Errorf("it redirects to another origin, %s", text.Escape(r.URL.Host))
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}
