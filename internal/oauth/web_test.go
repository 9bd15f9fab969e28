package oauth

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestAddressesOfServers(t *testing.T) {
	public := newWeb("https://mcp.example.com/mcp")
	local := newWeb("http://localhost:1/mcp")
	intranet := newWeb("https://mcp.corp.internal/mcp", "https://10.1.2.3/login")
	tests := []struct {
		name    string
		w       *web
		address string
		problem string // "" means fine
	}{
		{"https", public, "https://login.example.com/a?b=c", ""},
		{"http", public, "http://login.example.com/", "neither https nor http on this machine"},
		{"loopback of a public server", public, "http://127.0.0.1:1/", "not on the public internet"},
		{"loopback by name", public, "https://localhost/", "not on the public internet"},
		{"loopback of a local server", local, "http://127.0.0.1:2/", ""},
		{"loopback in IPv6", local, "http://[::1]:2/", ""},
		{"unspecified address", local, "http://0.0.0.0:2/", "neither"},
		{"metadata service", public, "https://169.254.169.254/latest", "not on the public internet"},
		{"metadata service in IPv6", public, "https://[::ffff:169.254.169.254]/latest", "not on the public internet"},
		{"private", local, "https://192.168.1.1/", "not on the public internet"},
		{"carrier-grade NAT", public, "https://100.64.0.1/", "not on the public internet"},
		{"named in the settings", intranet, "https://10.1.2.3/token", ""},
		{"near an address named in the settings", intranet, "https://10.1.2.4/token", "not on the public internet"},
		{"file", public, "file:///etc/passwd", "not a web address"},
		{"script", public, "javascript:alert(1)", "not a web address"},
		{"option", public, "--help", "not a web address"},
		{"opaque", public, "https:example.com", "not a web address"},
		{"user", public, "https://me:secret@example.com/", "contains a user name"},
		{"control character", public, "https://example.com/\x1b[31m", "space or a control character"},
		{"space", public, "https://example.com/ x", "space or a control character"},
		{"long", public, "https://example.com/" + strings.Repeat("x", maxAddress), "more than"},
		{"empty", public, "", "not a web address"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.w.checkURL(tt.address)
			if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("%s: %v", tt.address, err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("it shows a secret: %v", err)
			}
		})
	}
}

// The addresses of a name are checked when it is dialed.
func TestNamesOfPrivateAddresses(t *testing.T) {
	w := newWeb("https://mcp.corp.internal/mcp")
	private := netip.MustParseAddr("10.0.0.1")
	if err := w.allow("mcp.corp.internal", private); err != nil {
		t.Errorf("the server's own host: %v", err)
	}
	if err := w.allow("login.corp.internal", private); err == nil {
		t.Error("another host on a private address")
	}
	if err := w.allow("login.example.com", netip.MustParseAddr("93.184.215.14")); err != nil {
		t.Errorf("a public address: %v", err)
	}
	// Whatever the name, the dialed address is checked.
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	for host, reached := range map[string]bool{"login.example.com": false, "mcp.corp.internal": true} {
		conn, err := w.dial(context.WithValue(t.Context(), dialKey{}, dialFor{host: host}), "tcp", parse(t, s.URL).Host)
		if conn != nil {
			_ = conn.Close()
		}
		if (err == nil) != reached {
			t.Errorf("dialling for %s: %v", host, err)
		}
	}
}

// A proxy resolves names, and may be able to reach private addresses.
func TestNamesAreResolvedBeforeAProxy(t *testing.T) {
	w := newWeb("https://mcp.corp.internal/mcp")
	if err := w.allowName(t.Context(), "localhost"); err == nil {
		t.Error("a name of this machine was left to the proxy")
	}
	if err := w.allowName(t.Context(), "127.0.0.1"); err == nil {
		t.Error("an address of this machine was left to the proxy")
	}
	if err := w.allowName(t.Context(), "mcp.corp.internal"); err != nil {
		t.Errorf("a host that the settings name: %v", err)
	}
}

func TestResponsesAreLimited(t *testing.T) {
	body, kind := "", "application/json"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/inside":
			http.Redirect(w, r, "https://10.0.0.1/", http.StatusFound)
		default:
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(body))
		}
	}))
	defer s.Close()
	w := newWeb(s.URL)
	defer w.close()
	for _, tt := range []struct{ path, kind, body, problem string }{
		{"/", "application/json", `{"issuer":"x"}`, ""},
		{"/", "application/oauth-authz-req+json; charset=utf-8", `{}`, ""},
		{"/", "text/html", `{}`, ""},
		{"/", "text/html", `<html>s3cret`, "not JSON"},
		{"/", "application/x-www-form-urlencoded", `access_token=s3cret`, "not JSON"},
		{"/", "application/json", `["s3cret"]`, "not a JSON object"},
		{"/", "application/json", `<html>s3cret`, "not JSON"},
		{"/", "application/json", strings.Repeat(" ", maxBody+1), "the response exceeds 1048576 bytes"},
		{"/round", "", "", "redirects"},
		{"/inside", "", "", "not on the public internet"},
	} {
		body, kind = tt.body, tt.kind
		_, err := w.getJSON(t.Context(), s.URL+tt.path)
		if (err == nil) != (tt.problem == "") || err != nil && (!strings.Contains(err.Error(), tt.problem) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%s %.40q: %v", tt.path, tt.body, err)
		}
	}
}

// A scope may be a list, and nothing of another type makes the answer useless.
func TestScopesOfAnswers(t *testing.T) {
	for _, tt := range []struct{ scope, want string }{
		{`"a b"`, "a b"}, {`["a","b"]`, "a b"}, {`["a b","c"]`, "a b c"}, {`[]`, ""}, {`""`, ""}, {`5`, ""}, {`{"a":1}`, ""}, {`[5,"a"]`, "a"}, {`null`, "asked"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"access_token":"t","token_type":"Bearer","scope":` + tt.scope + `}`))
		}))
		w := newWeb(s.URL)
		got, err := w.tokens(t.Context(), s.URL, credentials{}, url.Values{"scope": {"asked"}}, time.Now())
		if err != nil || strings.Join(got.Scopes, " ") != tt.want {
			t.Errorf("%s: %q, %v", tt.scope, got.Scopes, err)
		}
		w.close()
		s.Close()
	}
}

// Some token endpoints answer with a form, whatever is asked for.
func TestFormsOfTokenEndpoints(t *testing.T) {
	form := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		_, _ = w.Write([]byte(form))
	}))
	defer s.Close()
	w := newWeb(s.URL)
	defer w.close()
	for _, tt := range []struct{ form, want string }{
		{"access_token=a%2Bb&expires_in=60&scope=x+y&token_type=bearer&refresh_token=r", "a+b r [x y] 60 <nil>"},
		{"error=bad_verification_code&error_description=s3cret", `  [] 0 it returned "bad_verification_code"`},
		{"%zz", "  [] 0 its answer has no usable access token"},
	} {
		form = tt.form
		got, err := w.tokens(t.Context(), s.URL, credentials{}, url.Values{}, time.Unix(0, 0))
		if got := fmt.Sprint(got.Access, " ", got.Refresh, " ", got.Scopes, " ", got.Expires, " ", err); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.form, got, tt.want)
		}
	}
}
