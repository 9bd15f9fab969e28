package web

import (
	"context"
	"fmt"
	"net"
	"net/url"

	"github.com/toolreg/toolreg/internal/webaddr"
)

// proxy returns the proxy for an address, or nil. With a proxy, the address
// that is reached cannot be checked here, so the host is resolved and checked
// first; a name that only the proxy can resolve is left to the proxy. The
// dialer then connects only to the proxy and to public addresses.
func (f *webFetch) proxy(ctx context.Context, d *webaddr.Dialer, u *url.URL) (*url.URL, error) {
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
	if err := d.CheckHost(ctx, u); err != nil {
		return nil, err
	}
	d.Allow = []string{net.JoinHostPort(proxy.Hostname(), webaddr.PortOf(proxy))}
	return proxy, nil
}
