// Package webaddr checks untrusted URLs and addresses: whether a person may be sent to a
// URL, and whether an address is on the public internet. Its [Dialer] connects to no
// others.
package webaddr

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"code.dny.dev/ssrf"
	"golang.org/x/net/idna"

	"github.com/toolreg/toolreg/internal/text"
)

// Check returns an error if a person must not be sent to a URL, because it is neither https nor
// http on this machine, or because it appears to have a different host.
func Check(address string) error {
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return errors.New("its address contains invalid characters")
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return errors.New("its address is not a web address")
	case u.User != nil:
		return errors.New("its address has a user name before the host, which can disguise the host")
	case u.Scheme == "https", u.Scheme == "http" && IsLoopback(u.Hostname()):
		return nil
	case u.Scheme == "http":
		return errors.New("its address is not encrypted: http is allowed only for this machine")
	}
	return errors.New("its address is neither https nor http on this machine")
}

// Origin returns scheme://host:port of a URL in normal form, always with the
// port.
func Origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	port = cmp.Or(port, map[string]string{"http": "80", "https": "443"}[scheme])
	return scheme + "://" + CanonicalHost(u.Hostname()) + ":" + port
}

// IsLoopback reports whether a host, as returned by [url.URL.Hostname], is
// written as this machine: localhost or a loopback address.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// IsPublic reports whether an address is on the public internet: not on this
// machine, in a private network or for a special purpose, and not an IPv6
// address that is translated to one of these. An IPv4 address in IPv6 notation
// is not public.
func IsPublic(a netip.Addr) bool {
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is4In6() || a == netip.AddrFrom4([4]byte{168, 63, 129, 16}) {
		return false // the last one is Azure's metadata service
	}
	network := "tcp6"
	if a.Is4() {
		network = "tcp4"
	}
	return ssrf.New(ssrf.WithAnyPort()).Safe(network, netip.AddrPortFrom(a, 443).String(), nil) == nil
}

// IssuerMetadata returns the possible addresses of the metadata of an authorization server, in
// the order of the MCP specification (2025-11-25, authorization server metadata discovery; RFC
// 8414 section 3.1, OpenID Connect Discovery 1.0 section 4.1). It returns nil if issuer is not a URL.
func IssuerMetadata(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	const oauth, openID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	base, path := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String(), strings.Trim(u.EscapedPath(), "/")
	if path == "" {
		return []string{base + oauth, base + openID}
	}
	return []string{base + oauth + "/" + path, base + openID + "/" + path, base + "/" + path + openID}
}

// ProxyAnswer is for [http.Transport.OnProxyConnectResponse]. It says that a proxy refuses a connection, which
// would read as if the server did.
func ProxyAnswer(_ context.Context, proxy *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	return fmt.Errorf("the proxy %s refuses the connection: %v", proxy.Host, StatusError(answer.StatusCode))
}

// StatusError is the status of a response that lacks the requested content. It contains nothing of
// the body, which may repeat what was sent.
type StatusError int

func (e StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprint("it answered ", int(e), " ", http.StatusText(int(e))))
}

// FirstDocument calls read with each possible address of a document until it returns no error. A host may
// answer an address that has no document with one that belongs elsewhere, a page or an error, so no answer at
// one address ends the search. The error is the first that is not isAbsent; found is false without one if no
// address has a document.
func FirstDocument(ctx context.Context, addresses []string,
	read func(address string) error, isAbsent func(error) bool) (found bool, err error) {
	for _, address := range addresses {
		e := read(address)
		if e == nil {
			return true, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return false, cause
		}
		if err == nil && !isAbsent(e) {
			err = e
		}
	}
	return false, err
}

// Explain returns why a request failed and, if known, what to do. It omits the address with which a
// client's error begins.
func Explain(err error) string {
	err = Cause(err)
	if blocked, ok := errors.AsType[*BlockedError](err); ok {
		return blocked.Error()
	}
	dns, lookup := errors.AsType[*net.DNSError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	op, _ := errors.AsType[*net.OpError](err)
	if op != nil && op.Op == "proxyconnect" {
		return "the proxy: " + Explain(op.Err)
	}
	reason := err.Error()
	if op != nil && op.Op == "dial" && op.Addr != nil {
		last := op.Err
		if call, ok := errors.AsType[*os.SyscallError](last); ok {
			last = call.Err
		}
		reason = fmt.Sprintf("connecting to %s: %v", op.Addr, last)
	}
	switch {
	case lookup && dns.IsNotFound:
		return fmt.Sprintf("host %q not found; check the address", dns.Name)
	case lookup:
		return fmt.Sprintf("looking up %q: %s; try again later", dns.Name, dns.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return reason + "; nothing listens there"
	case plain, errors.Is(err, http.ErrSchemeMismatch):
		return "what answers there does not speak TLS; its address may begin with http://"
	case unknown:
		return err.Error() + "; if you trust who signed it, add that certificate to the system's, on Linux also with SSL_CERT_FILE"
	case verification:
		return err.Error() + "; certificate checks cannot be disabled"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "the server closed the connection early"
	}
	return reason
}

// Explained returns an error with the text of [Explain].
func Explained(err error) error { return &explained{err} }

type explained struct{ cause error }

func (e *explained) Error() string { return Explain(e.cause) }

func (e *explained) Unwrap() error { return e.cause }

// Cause removes the address from an error of a client or a parser: messages have it elsewhere, and it may contain a
// secret.
func Cause(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// CanonicalHost returns a host in the form in which hosts are compared and dialed: in ASCII and
// lower case, without brackets and final dots, addresses in the usual notation, and IPv4
// addresses in IPv6 notation as IPv4.
func CanonicalHost(host string) string {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		if ascii, err := idna.Lookup.ToASCII(host); err == nil {
			host = ascii
		}
	}
	host = strings.ToLower(strings.TrimRight(host, "."))
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	return host
}

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
	return fmt.Sprintf("%s an address of this machine, a private network or a special purpose; the setting fetch.allowHosts: [%s] allows it",
		what, text.Quote(net.JoinHostPort(e.Host, e.Port)))
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

// Through makes a transport dial with d, through the proxy that a function returns for an address,
// if any. An address behind a proxy cannot be checked when it is dialed, so it is checked before; a
// name that only the proxy can resolve is left to it. The proxy itself may always be dialed.
func (d *Dialer) Through(t *http.Transport, proxy func(*url.URL) (*url.URL, error)) {
	t.Proxy, t.DialContext, t.OnProxyConnectResponse = nil, d.Dial, ProxyAnswer
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

// isNumeric reports whether some resolvers take a host for an address in an old notation, such as
// 127.1, 2130706433 and 0x7f000001, and not for a name. Names on the public internet never end in a
// numeric label.
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
// Requests of HTTP/2 share a connection, so one that is dead, as after a sleep of the machine, is found by pings.
func NewTransport(maxHeader int64) *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, OnProxyConnectResponse: ProxyAnswer,
		ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second},
		TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: maxHeader}
}

// WhenWritten returns a context for a request, with which written is called when the request is written.
func WhenWritten(ctx context.Context, written func()) context.Context {
	return httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { written() }})
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
