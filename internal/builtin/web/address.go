package web

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

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
	if i := strings.IndexFunc(raw,
		func(r rune) bool { return r <= ' ' || r == 0x7f || unicode.IsSpace(r) || r == unicode.ReplacementChar }); i >= 0 {
		return nil, fmt.Errorf("contains a space or a control character at byte %d; percent-encode it, such as %%20", i)
	}
	if isHostPort(raw) { // its host could be read as a scheme
		return nil, errNoScheme
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("is not a valid address: %w", webaddr.Cause(err))
	}
	switch u.Scheme {
	case "http", "https":
	case "":
		return nil, errNoScheme
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

var errNoScheme = errors.New("has no scheme; begin it with https:// or http://")

// isHostPort reports whether an address begins with a host and a port, as in localhost:3000/x.
func isHostPort(raw string) bool {
	host, rest, _ := strings.Cut(raw, ":")
	port := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	after := rest[len(port):]
	return host != "" && port != "" && !strings.ContainsAny(host, "/?#") &&
		(after == "" || strings.ContainsAny(after[:1], "/?#"))
}

// cleanHost changes the host to the form in which it is dialed, without the default port, so that
// everyone who reads the address sees the same host.
func cleanHost(u *url.URL) error {
	host, port := webaddr.CanonicalHost(u.Hostname()), u.Port()
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("has port %s; ports range from 1 to 65535", port)
		}
		port = strconv.FormatUint(n, 10)
	}
	_, err := netip.ParseAddr(host)
	switch {
	case strings.Contains(host, "%"):
		return errors.New("contains an IPv6 zone, which is not supported")
	case strings.Trim(host, ".") == "":
		return errors.New("has no host")
	case err != nil && strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-._") != "": // idna rejects _
		return fmt.Errorf("has the invalid host name %s", text.Quote(host))
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.Host = host; port != "" && port != webaddr.PortOf(u) {
		u.Host += ":" + port
	}
	return nil
}
