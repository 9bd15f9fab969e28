package sandbox_test

import (
	"net/netip"
	"testing"

	"github.com/toolreg/toolreg/internal/sandbox"
)

func TestHosts(t *testing.T) {
	for _, c := range []struct {
		entry, name string
		port        int
		want        bool
	}{
		{"example.org", "example.org", 443, true},
		{"example.org", "EXAMPLE.org.", 80, true},
		{"example.org", "example.org", 22, false},
		{"example.org", "www.example.org", 443, false},
		{"example.org", "notexample.org", 443, false},
		{"example.org:22", "example.org", 22, true},
		{"example.org:22", "example.org", 443, false},
		{"example.org:1", "example.org", 1, true},
		{"example.org:65535", "example.org", 65535, true},
		{"example.org:*", "example.org", 5432, true},
		{"*.example.org", "a.b.example.org", 443, true},
		{"*.example.org", "example.org", 443, false},
		{"*.example.org", "badexample.org", 443, false},
		{"*.Example.org:8443", "a.example.org", 8443, true},
		{"[2001:db8::1]:443", "2001:db8:0::1", 443, true},
		{"2001:db8::1", "2001:db8::1", 80, true},
		{"b\u00fccher.example", "xn--bcher-kva.example", 443, true},
		{"*.b\u00fccher.example", "a.xn--bcher-kva.example.", 443, true},
		{"*.b\u00fccher.example", "a.bucher.example", 443, false},
		{"192.0.2.1:80", "::ffff:192.0.2.1", 80, true},
	} {
		h, err := sandbox.ParseHost(c.entry)
		if err != nil {
			t.Errorf("%s: %v", c.entry, err)
		} else if got := h.Matches(c.name, c.port); got != c.want {
			t.Errorf("%s opens %s:%d: %v", c.entry, c.name, c.port, got)
		}
	}
	for _, entry := range []string{"", ":443", "*.", "*", "a*.org", "https://example.org", "example.org/x", "example.org:0", "example.org:65536", "example.org:https", "user@example.org", "[::1"} {
		if _, err := sandbox.ParseHost(entry); err == nil {
			t.Errorf("%q is accepted", entry)
		}
	}
}

func TestHostsReach(t *testing.T) {
	for _, c := range []struct {
		entry, address string
		want           bool
	}{
		{"example.org", "93.184.215.14", true},
		{"example.org", "10.1.2.3", true}, // a server on a private network
		{"example.org", "127.0.0.1", false},
		{"example.org", "::1", false},
		{"example.org", "::ffff:127.0.0.1", false},
		{"example.org", "0.0.0.0", false},
		{"example.org", "169.254.169.254", false},
		{"*.example.org", "93.184.215.14", true},
		{"*.example.org", "10.1.2.3", false},
		{"localhost:8080", "127.0.0.1", true},
		{"*.localhost:8080", "127.0.0.1", false},
		{"127.0.0.1:8080", "127.0.0.1", true},
		{"127.0.0.1:8080", "127.0.0.2", false},
		{"169.254.169.254", "169.254.169.254", true},
	} {
		h, err := sandbox.ParseHost(c.entry)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.MayReach(netip.MustParseAddr(c.address)); got != c.want {
			t.Errorf("%s may lead to %s: %v", c.entry, c.address, got)
		}
	}
}
