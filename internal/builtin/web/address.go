package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/webaddr"
)

const maxAddress = 8192 // bytes

// parseAddress parses the address of a web page. The returned URL has an ASCII
// host in lower case, and neither user nor fragment. The errors complete a
// sentence that starts with the address.
func parseAddress(raw string) (*url.URL, error) {
	if len(raw) > maxAddress {
		return nil, fmt.Errorf("is longer than %d characters", maxAddress)
	}
	if i := strings.IndexFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f || unicode.IsSpace(r) || r == unicode.ReplacementChar }); i >= 0 {
		return nil, fmt.Errorf("contains a space or a control character at byte %d; percent-encode it, such as %%20", i)
	}
	u, err := url.Parse(raw)
	if err != nil {
		var reason *url.Error
		if errors.As(err, &reason) {
			err = reason.Err // the address itself may contain a secret
		}
		return nil, fmt.Errorf("is not a valid address: %w", err)
	}
	switch u.Scheme {
	case "http", "https":
	case "":
		return nil, errors.New("has no scheme; begin it with https://")
	default:
		return nil, fmt.Errorf("begins with %s; only http and https are supported", text.Quote(u.Scheme+":"))
	}
	if u.Hostname() == "" {
		return nil, errors.New("has no host")
	}
	if u.User != nil {
		return nil, errors.New("contains a user or a password; use the setting fetch.headers to send credentials")
	}
	if err := cleanHost(u); err != nil {
		return nil, err
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// cleanHost returns the host as it is dialed, with full-width digits and
// capitals normalized, so that everyone who reads the address sees the same
// host.
func cleanHost(u *url.URL) error {
	host, port := u.Hostname(), u.Port()
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("has port %s; ports range from 1 to 65535", port)
		}
		port = strconv.FormatUint(n, 10)
	}
	if strings.Contains(host, "%") {
		return errors.New("contains an IPv6 zone, which is not supported")
	}
	if _, err := netip.ParseAddr(host); err != nil {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil && !plainHost(host) {
			return fmt.Errorf("has the invalid host name %s", text.Quote(host))
		}
		if err != nil {
			ascii = host
		}
		if host = strings.ToLower(ascii); strings.Trim(host, ".") == "" {
			return errors.New("has no host")
		}
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" {
		host += ":" + port
	}
	u.Host = host
	return nil
}

// plainHost accepts names that are in use although idna rejects them, such as
// names with an underscore.
func plainHost(host string) bool {
	for _, c := range []byte(host) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_') {
			return false
		}
	}
	return true
}

// originOf returns scheme://host[:port], without the port if it is the scheme's
// default.
func originOf(u *url.URL) string {
	host := u.Host
	if port := u.Port(); port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return u.Scheme + "://" + host
}

// blocked is the error for an address that web_fetch must not connect to.
type blocked struct {
	host, port string
	address    string // what the host resolves to
}

func (e *blocked) Error() string {
	what := fmt.Sprintf("%s is", text.Quote(e.host))
	if e.host != e.address {
		what = fmt.Sprintf("%s resolves to %s, which is", text.Quote(e.host), e.address)
	}
	return fmt.Sprintf("%s an address of this machine, a private network or a special purpose; the setting fetch.allowHosts: [%s] allows it", what, text.Quote(net.JoinHostPort(e.host, e.port)))
}

// dialer connects to public addresses, and to any address of the allowed hosts.
// It checks the address that is actually dialed, after name resolution and
// redirects, so that DNS rebinding has no effect.
type dialer struct{ allow []string }

func newDialer(allow []string) *dialer { return &dialer{allow: allow} }

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var nd net.Dialer
	if !d.allows(host, port) {
		nd.Control = func(network, address string, _ syscall.RawConn) error {
			if err := d.check(network, address); err != nil {
				at, _, _ := net.SplitHostPort(address)
				return &blocked{host: host, port: port, address: at}
			}
			return nil
		}
	}
	return nd.DialContext(ctx, network, address)
}

// check rejects all addresses that are not public.
func (d *dialer) check(network, address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if network != "tcp4" && network != "tcp6" || !webaddr.IsPublic(at.Addr()) {
		return errors.New("a special address")
	}
	return nil
}

// allows reports whether an entry of fetch.allowHosts matches host and port.
func (d *dialer) allows(host, port string) bool {
	host = canonicalHost(host)
	for _, entry := range d.allow {
		if canonicalHost(entry) == host {
			return true
		}
		h, p, err := net.SplitHostPort(entry)
		if err == nil && canonicalHost(h) == host && p == port {
			return true
		}
	}
	return false
}

func canonicalHost(host string) string {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
