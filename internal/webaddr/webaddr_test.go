package webaddr

import "testing"

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
