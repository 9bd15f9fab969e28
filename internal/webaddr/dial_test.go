package webaddr

import (
	"strings"
	"testing"
)

func TestDialerChecksTheAddressItself(t *testing.T) {
	d := &Dialer{}
	for address, public := range map[string]bool{
		"8.8.8.8:80": true, "1.1.1.1:8443": true, "[2606:4700:4700::1111]:443": true,
		"127.0.0.1:80": false, "[::ffff:8.8.8.8]:80": false, "168.63.129.16:80": false, "[fec0::1]:80": false, "x": false,
	} {
		network := "tcp4"
		if strings.HasPrefix(address, "[") {
			network = "tcp6"
		}
		if err := d.check(network, address); (err == nil) != public {
			t.Errorf("%s: %v", address, err)
		}
	}
	if d.check("unix", "8.8.8.8:80") == nil {
		t.Error("another network is allowed")
	}
}

func TestAllowedHosts(t *testing.T) {
	d := &Dialer{Allow: []string{"Intranet.example.", "localhost:81", "10.0.0.9", "::1", "[fd00::1]:8080"}}
	for _, c := range []struct {
		host, port string
		want       bool
	}{
		{"intranet.example", "80", true}, {"INTRANET.example.", "1", true}, {"x.intranet.example", "80", false}, {"intranet.example.evil", "80", false},
		{"localhost", "81", true}, {"localhost", "80", false}, {"10.0.0.9", "80", true}, {"10.0.0.90", "80", false},
		{"::1", "5", true}, {"0:0:0:0:0:0:0:1", "5", true}, {"fd00::1", "8080", true}, {"fd00::1", "80", false}, {"", "80", false},
	} {
		if got := d.allows(c.host, c.port); got != c.want {
			t.Errorf("%s port %s: %v", c.host, c.port, got)
		}
	}
}
