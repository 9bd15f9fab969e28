package webaddr

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDialerChecksTheAddressItself(t *testing.T) {
	for address, public := range map[string]bool{
		"8.8.8.8:80": true, "1.1.1.1:8443": true, "[2606:4700:4700::1111]:443": true,
		"127.0.0.1:80": false, "[::ffff:8.8.8.8]:80": false, "168.63.129.16:80": false, "[fec0::1]:80": false, "x": false,
	} {
		network := "tcp4"
		if strings.HasPrefix(address, "[") {
			network = "tcp6"
		}
		if got := mayDial(network, address); got != public {
			t.Errorf("%s: %v", address, got)
		}
	}
	if mayDial("unix", "8.8.8.8:80") {
		t.Error("another network is allowed")
	}
}

func TestAllowedHosts(t *testing.T) {
	d := &Dialer{Allow: []string{"Intranet.example.", "localhost:81", "10.0.0.9", "::1", "[fd00::1]:8080", "b\u00fccher.example", "db.example:05432"}}
	for _, c := range []struct {
		host, port string
		want       bool
	}{
		{"intranet.example", "80", true}, {"INTRANET.example.", "1", true}, {"x.intranet.example", "80", false}, {"intranet.example.evil", "80", false},
		{"localhost", "81", true}, {"localhost", "80", false}, {"10.0.0.9", "80", true}, {"10.0.0.90", "80", false},
		{"::1", "5", true}, {"0:0:0:0:0:0:0:1", "5", true}, {"fd00::1", "8080", true}, {"fd00::1", "80", false}, {"", "80", false},
		{"::ffff:10.0.0.9", "80", true}, {"xn--bcher-kva.example", "80", true}, {"B\u00dcCHER.example.", "80", true}, {"bucher.example", "80", false},
		{"db.example", "5432", true}, {"db.example", "05432", true}, {"db.example", "543", false}, {"10.0.0.9.", "80", true}, {"10.9", "80", false},
	} {
		if got := d.allows(c.host, c.port); got != c.want {
			t.Errorf("%s port %s: %v", c.host, c.port, got)
		}
	}
}

// A proxy may read as an address what is no name that could be resolved here.
func TestProxiesAreNotAskedForNumbers(t *testing.T) {
	d := &Dialer{Allow: []string{"127.2:80"}}
	for host, blocked := range map[string]bool{
		"127.1": true, "2130706433": true, "0x7f000001": true, "0x7f.1": true, "0X7F.0.0.0x1": true, "017700000001": true, "127.0.0.1.": true, "127.1.": true,
		"\uff11\uff12\uff17.1": true, "169.254.43518": true, "127.0.0.1": true, "[::ffff:127.0.0.1]": true,
		"127.2": false, "8.8.8.8": false, "name.invalid": false, "1a.invalid": false, "x.0xg": false,
	} {
		err := d.CheckHost(t.Context(), &url.URL{Scheme: "http", Host: host})
		if _, ok := errors.AsType[*BlockedError](err); ok != blocked {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// TestDeadConnection checks that a request over HTTP/2 does not wait for a server that is gone without a word.
func TestDeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := NewTransport(0)
		(&Dialer{}).Through(transport, nil)
		if transport.Proxy != nil {
			t.Error("a proxy is asked although there is none")
		}
		transport.Protocols = &http.Protocols{}
		transport.Protocols.SetUnencryptedHTTP2(true)
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, there) }()
			return here, nil
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if resp, err := transport.RoundTrip(r); err == nil {
			_ = resp.Body.Close()
			t.Error("an answer of nobody")
		}
		if waited := time.Since(start); waited > time.Minute {
			t.Errorf("waited for %s", waited)
		}
	})
}
