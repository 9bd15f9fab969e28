package web

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
)

// proxy returns the proxy for an address, or nil. With a proxy, the address
// that is reached cannot be checked here, so the host is resolved and checked
// first; a name that only the proxy can resolve is left to the proxy. The
// dialer then connects only to the proxy and to public addresses.
func (f *webFetch) proxy(ctx context.Context, d *dialer, u *url.URL) (*url.URL, error) {
	if f.opts.Proxy == nil {
		return nil, nil
	}
	proxy, err := f.opts.Proxy(u)
	if err != nil {
		return nil, fmt.Errorf("choosing a proxy: %w", err)
	}
	if proxy == nil {
		return nil, nil
	}
	if err := d.checkHost(ctx, u); err != nil {
		return nil, err
	}
	d.allow = []string{net.JoinHostPort(proxy.Hostname(), portOf(proxy))}
	return proxy, nil
}

func portOf(u *url.URL) string {
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

// checkHost rejects a host that resolves to an address that dial would reject.
func (d *dialer) checkHost(ctx context.Context, u *url.URL) error {
	host, port := u.Hostname(), portOf(u)
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
			return &blocked{host: host, port: port, address: a.String()}
		}
	}
	return nil
}
