package webaddr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"github.com/toolreg/toolreg/internal/text"
)

// BlockedError reports an address that is not public and not allowed.
type BlockedError struct {
	Host, Port string
	Address    string // what the host resolves to
}

func (e *BlockedError) Error() string {
	what := fmt.Sprintf("%s is", text.Quote(e.Host))
	if e.Host != e.Address {
		what = fmt.Sprintf("%s resolves to %s, which is", text.Quote(e.Host), e.Address)
	}
	return fmt.Sprintf("%s an address of this machine, a private network or a special purpose; the setting fetch.allowHosts: [%s] allows it", what, text.Quote(net.JoinHostPort(e.Host, e.Port)))
}

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
			if err := d.check(network, address); err != nil {
				at, _, _ := net.SplitHostPort(address)
				return &BlockedError{Host: host, Port: port, Address: at}
			}
			return nil
		}
	}
	return nd.DialContext(ctx, network, address)
}

// check rejects all addresses that are not public.
func (d *Dialer) check(network, address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if network != "tcp4" && network != "tcp6" || !IsPublic(at.Addr()) {
		return errors.New("a special address")
	}
	return nil
}

// allows reports whether an entry of fetch.allowHosts matches host and port.
func (d *Dialer) allows(host, port string) bool {
	host = CanonicalHost(host)
	for _, entry := range d.Allow {
		if CanonicalHost(entry) == host {
			return true
		}
		h, p, err := net.SplitHostPort(entry)
		if err == nil && CanonicalHost(h) == host && p == port {
			return true
		}
	}
	return false
}

// CanonicalHost returns a host in the form in which hosts are compared.
func CanonicalHost(host string) string {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
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
// request that a proxy makes. A host that cannot be resolved is left to the proxy.
func (d *Dialer) CheckHost(ctx context.Context, u *url.URL) error {
	host, port := u.Hostname(), PortOf(u)
	if d.allows(host, port) {
		return nil
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil // the proxy may be able to resolve it
	}
	for _, a := range addresses {
		a = a.Unmap()
		network := "tcp6"
		if a.Is4() {
			network = "tcp4"
		}
		if d.check(network, netip.AddrPortFrom(a, 80).String()) != nil {
			return &BlockedError{Host: host, Port: port, Address: a.String()}
		}
	}
	return nil
}
