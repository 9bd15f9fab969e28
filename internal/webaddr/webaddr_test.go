package webaddr

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"syscall"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, address := range []string{
		"file:///etc/passwd", "javascript:alert(1)", "-x", "--help", "", "http://example.com/", "https://user@example.com/", "https://example.com\\@evil.example/",
		"https://exa mple.com/", "https:/example.com", "https:example.com", "data:text/html,x", "https://", "https://\n", "ftp://localhost/", "http://127.0.0.1.evil.example/", "//example.com/",
		"https://example.com/\x1b[2J", "https://example.com/\x7f", "https://:443/", "http://localhost.evil.example/", "http://[::ffff:10.0.0.1]/",
	} {
		if err := Check(address); err == nil {
			t.Errorf("%q may be opened", address)
		}
	}
	for _, address := range []string{"https://example.com/a?b=c#d", "http://localhost:8080/", "http://LOCALHOST/", "http://127.0.0.1/x", "http://127.8.9.1/", "http://[::1]:9/", "http://[::ffff:127.0.0.1]/"} {
		if err := Check(address); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestOrigin(t *testing.T) {
	for address, want := range map[string]string{
		"https://Example.com/a?b":   "https://example.com:443",
		"HTTP://example.com":        "http://example.com:80",
		"http://user@[::1]:8080/x":  "http://::1:8080",
		"https://example.com:443/#": "https://example.com:443",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := Origin(u); got != want {
			t.Errorf("origin of %s is %s, want %s", address, got, want)
		}
	}
}

func TestIsPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700:4700::1111": true,
		"127.0.0.1": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "100.64.0.1": false, "169.254.169.254": false,
		"168.63.129.16": false, "198.18.0.1": false, "0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "fe80::1": false, "fc00::1": false, "fec0::1": false, "::ffff:8.8.8.8": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false,
	} {
		if got := IsPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: public %v", address, got)
		}
	}
}

// What failed is said with what to do, whoever sent the request.
func TestExplain(t *testing.T) {
	dial := func(errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9}, Err: os.NewSyscallError("connect", errno)}
	}
	const noTLS = "what answers there does not speak TLS; its address may begin with http://"
	for _, tt := range []struct {
		err  error
		want string
	}{
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, noTLS},
		{http.ErrSchemeMismatch, noTLS},
		{&net.DNSError{Name: "a.example", IsNotFound: true}, `host "a.example" not found; check the address`},
		{&net.DNSError{Name: "a.example", Err: "i/o timeout"}, `looking up "a.example": i/o timeout; try again later`},
		{syscall.ECONNREFUSED, "connection refused; nothing listens there"},
		{dial(syscall.ECONNREFUSED), "connecting to 10.0.0.1:9: connection refused; nothing listens there"},
		{&net.OpError{Op: "proxyconnect", Net: "tcp", Err: dial(syscall.EHOSTUNREACH)}, "the proxy: connecting to 10.0.0.1:9: no route to host"},
		{&net.OpError{Op: "proxyconnect", Net: "tcp", Err: &net.DNSError{Name: "a.example", IsNotFound: true}}, `the proxy: host "a.example" not found; check the address`},
		{&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, "the server closed the connection early"},
		{&BlockedError{Host: "a", Port: "80", Address: "::1"}, (&BlockedError{Host: "a", Port: "80", Address: "::1"}).Error()},
		{io.ErrUnexpectedEOF, "the server closed the connection early"},
		{x509.UnknownAuthorityError{}, "x509: certificate signed by unknown authority; if you trust who signed it, add that certificate to the system's, on Linux also with SSL_CERT_FILE"},
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"a.example"}}, Host: "b.example"}}, "tls: failed to verify certificate: x509: certificate is valid for a.example, not b.example; certificate checks cannot be disabled"},
		{errors.New("odd"), "odd"},
	} {
		err := &url.Error{Op: "Get", URL: "https://a.example/?key=secret", Err: tt.err}
		if got := Explain(err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
