package oauth

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/webaddr"

	"github.com/toolreg/toolreg/internal/settings"
)

func TestChallenges(t *testing.T) {
	tests := []struct {
		name    string
		headers []string
		want    challenge
	}{
		{"none", nil, challenge{}},
		{"codeOnly", []string{"Bearer"}, challenge{given: true, token: true}},
		{"whole", []string{`bearer resource_metadata="https://a/b", scope="x  y x", error="invalid_token"`},
			challenge{given: true, token: true, metadata: "https://a/b", scopes: []string{"x", "y"}, err: "invalid_token"}},
		{"with another scheme", []string{`Basic realm="x", Bearer scope="a"`}, challenge{given: true, token: true, scopes: []string{"a"}}},
		{"in another header", []string{`Basic realm="x"`, `Bearer scope="a"`}, challenge{given: true, token: true, scopes: []string{"a"}}},
		{"another", []string{`Negotiate`, `Basic realm="Bearer"`}, challenge{given: true}},
		{"broken", []string{`Bearer scope="a`}, challenge{given: true, token: true}},
		{"no scopes", []string{"Bearer scope=\"a\\\"b \x1b\""}, challenge{given: true, token: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, readChallenge(tt.headers), cmp.AllowUnexported(challenge{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCovers(t *testing.T) {
	const server = "https://mcp.example.com/a/mcp"
	for resource, want := range map[string]bool{
		server: true, server + "/": true, "https://MCP.example.com:443/a/mcp": true, "https://mcp.example.com/a": true, "https://mcp.example.com": true,
		"https://mcp.example.com/a/mc": false, "https://mcp.example.com/a/mcp/deeper": false, "https://mcp.example.com/b": false,
		"https://mcp.example.com.evil.example/a/mcp": false, "http://mcp.example.com/a/mcp": false, "https://mcp.example.com:444/a/mcp": false,
		"https://evil.example/a/mcp": false, "": false, "https://me@mcp.example.com/a/mcp": false, "https://mcp.example.com/a/mcp?x": false,
	} {
		if isForServer(resource, server) != want {
			t.Errorf("%q: not %v", resource, want)
		}
	}
}

func TestMetadataURLs(t *testing.T) {
	want := []string{"https://named/x", "https://a:1/.well-known/oauth-protected-resource/b/mcp", "https://a:1/.well-known/oauth-protected-resource"}
	if diff := cmp.Diff(want, resourceMetadata("https://named/x", "https://a:1/b/mcp/")); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
	want = []string{"https://a/.well-known/oauth-authorization-server/t/1", "https://a/.well-known/openid-configuration/t/1", "https://a/t/1/.well-known/openid-configuration"}
	if diff := cmp.Diff(want, webaddr.IssuerMetadata("https://a/t/1/")); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
}

// Web sites that answer every URL with a page do not have metadata there, and
// settings replace missing metadata.
func TestDiscoveryWithSettings(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>welcome"))
	}))
	defer s.Close()
	c := New(settings.Server{URL: s.URL + "/mcp", OAuth: &settings.OAuth{Issuer: s.URL + "/tenant", AuthorizationURL: s.URL + "/in", TokenURL: s.URL + "/get"}}, nil, nil)
	w := c.web()
	defer w.close()
	a, err := c.discover(t.Context(), w, challenge{})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{a.Issuer, a.AuthorizationEndpoint, a.TokenEndpoint, a.RegistrationEndpoint, a.resource}
	if diff := cmp.Diff([]string{s.URL + "/tenant", s.URL + "/in", s.URL + "/get", "", s.URL + "/mcp"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := c.checkPKCE(a); err != nil {
		t.Error(err)
	}
	c = New(settings.Server{URL: s.URL + "/mcp"}, nil, nil)
	if a, err = c.discover(t.Context(), w, challenge{}); err != nil || !a.guessed || a.TokenEndpoint != s.URL+"/token" {
		t.Errorf("%+v, %v", a, err)
	}
	// A server error does not mean that the server predates metadata.
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer broken.Close()
	c = New(settings.Server{URL: broken.URL + "/mcp"}, nil, nil)
	if _, err := c.discover(t.Context(), w, challenge{}); err == nil || !strings.Contains(err.Error(), "502 Bad Gateway") {
		t.Errorf("a server in trouble: %v", err)
	}
}

func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer resource_metadata="https://a", scope="a b"`)
	f.Add(`Basic x, Bearer error=insufficient_scope`)
	f.Fuzz(func(t *testing.T, header string) {
		for _, s := range readChallenge([]string{header}).scopes {
			if !table.IsScope(s) {
				t.Errorf("scope %q", s)
			}
		}
	})
}
