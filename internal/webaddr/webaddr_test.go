package webaddr

import (
	"net/url"
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
