package oauth

import (
	"fmt"
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
	key := c.key()
	for setting, want := range map[string]string{"none": "", "https://other.example": "https://other.example"} {
		c.config.Resource = setting
		if a, err := c.discover(t.Context(), w, challenge{}); err != nil || a.resource != want || c.key() == key {
			t.Errorf("with the resource %q: %+v, %v", setting, a, err)
		}
	}
	c.foreign = true
	for setting, allowed := range map[string]bool{"none": false, "https://other.example": false, s.URL + "/mcp": true} {
		c.config.Resource = setting
		if _, err := c.discover(t.Context(), w, challenge{}); (err == nil) != allowed {
			t.Errorf("a project chooses the resource %q: %v", setting, err)
		}
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

func TestIssuersWithTenants(t *testing.T) {
	const several = "https://i.example/{tenantid}/v2.0"
	for issuer, named := range map[string]string{
		"https://i.example/common/v2.0": several, "https://i.example/t": "https://i.example/{tenantid}", "https://i.example/{tenantid}": "https://i.example/{tenantid}",
	} {
		if !isIssuer(named, issuer) {
			t.Errorf("%s is not %s", issuer, named)
		}
	}
	for issuer, named := range map[string]string{
		"https://i.example/a/b/v2.0": several, "https://i.example//v2.0": several, "https://i.example/v2.0": several, "https://i.example/common": several,
		"https://evil.example/common/v2.0": several, "https://i.example.evil/common/v2.0": several, "http://i.example/common/v2.0": several,
		"https://evil.example/v2.0": "https://{tenantid}/v2.0", several: "https://i.example/common/v2.0",
	} {
		if isIssuer(named, issuer) {
			t.Errorf("%s is %s", issuer, named)
		}
	}
}

// Hosts answer an address that has no document with that of another, or with an error, and get types wrong. What is needed
// of a login is found nevertheless, and nothing that belongs to another is used.
func TestOddMetadata(t *testing.T) {
	const resource, issuer, openID = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	for _, tt := range []struct {
		name  string
		pages map[string]string // $ is the origin; "500" is that status
		want  string            // the token endpoint, the issuer and the scopes
		err   string
	}{
		{"another server's first", map[string]string{resource + "/mcp": `{"resource":"$/other","authorization_servers":["$/x"]}`,
			resource: `{"resource":"$","authorization_servers":["$/t"]}`, issuer + "/t": `{"issuer":"$/t","token_endpoint":"$/a","authorization_endpoint":"$/b"}`}, "/a /t []", ""},
		{"another issuer's first", map[string]string{resource: `{"resource":"$","authorization_servers":["$/t"]}`,
			issuer + "/t": `{"issuer":"$","token_endpoint":"$/no"}`, "/t" + openID: `{"issuer":"$/t","token_endpoint":"$/a","authorization_endpoint":"$/b"}`}, "/a /t []", ""},
		{"errors first", map[string]string{resource + "/mcp": "500", resource: `{"resource":"$","authorization_servers":["$"]}`, issuer: "500",
			openID: `{"issuer":"$","token_endpoint":"$/a","authorization_endpoint":"$/b"}`}, "/a  []", ""},
		{"only another server's", map[string]string{resource: `{"resource":"$/other","authorization_servers":["$"]}`,
			issuer: `{"issuer":"$","token_endpoint":"$/a","authorization_endpoint":"$/b"}`}, "", "is for another server"},
		{"only another issuer's", map[string]string{issuer: `{"issuer":"$/x","token_endpoint":"$/a","authorization_endpoint":"$/b"}`}, "", "is for another issuer"},
		{"several tenants", map[string]string{resource: `{"resource":"$","authorization_servers":["$/common/v2.0"]}`,
			"/common/v2.0" + openID: `{"issuer":"$/{tenantid}/v2.0","token_endpoint":"$/a","authorization_endpoint":"$/b"}`}, "/a /{tenantid}/v2.0 []", ""},
		{"types", map[string]string{resource + "/mcp": `{"resource":"$/mcp","authorization_servers":"$","scopes_supported":"x y","bearer_methods_supported":5}`,
			issuer: `{"issuer":"$","token_endpoint":"$/a","authorization_endpoint":"$/b","scopes_supported":false,"registration_endpoint":{},"jwks_uri":[],"response_types_supported":"code"}`}, "/a  [x y]", ""},
		{"byte order marks", map[string]string{resource: "\ufeff" + `{"resource":"$/mcp","authorization_servers":["$/t"]}`,
			issuer + "/t": "\ufeff" + `{"issuer":"$/t","token_endpoint":"$/a","authorization_endpoint":"$/b"}`}, "/a /t []", ""},
		{"no document of the first authorization server", map[string]string{resource: `{"resource":"$/mcp","authorization_servers":["$/x","$/t"]}`,
			issuer + "/t": `{"issuer":"$/t","token_endpoint":"$/a","authorization_endpoint":"$/b"}`}, "/a /t []", ""},
		{"an error of the first authorization server", map[string]string{resource: `{"resource":"$/mcp","authorization_servers":["$/x","$/t"]}`,
			issuer + "/x": "500", issuer + "/t": `{"issuer":"$/t","token_endpoint":"$/a","authorization_endpoint":"$/b"}`}, "/a /t []", ""},
		{"no documents of authorization servers", map[string]string{resource: `{"resource":"$/mcp","authorization_servers":["$/x","$/t"]}`}, "/x/token /x []", ""},
		{"only an error of an authorization server", map[string]string{resource: `{"resource":"$/mcp","authorization_servers":["$/x","$/t"]}`,
			issuer + "/t": "500"}, "", "asking the authorization server"},
		{"no authorization server named", map[string]string{resource: `{"resource":"$/mcp"}`,
			issuer: `{"issuer":"$","token_endpoint":"$/a","authorization_endpoint":"$/b"}`}, "/a  []", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			origin := ""
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				page, ok := tt.pages[r.URL.Path]
				switch {
				case !ok:
					w.WriteHeader(http.StatusNotFound)
				case page == "500":
					w.WriteHeader(http.StatusInternalServerError)
				default:
					_, _ = w.Write([]byte(strings.ReplaceAll(page, "$", origin)))
				}
			}))
			defer s.Close()
			origin = s.URL
			c := New(settings.Server{URL: s.URL + "/mcp"}, nil, nil)
			w := c.web()
			defer w.close()
			a, err := c.discover(t.Context(), w, challenge{})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.ReplaceAll(fmt.Sprint(a.TokenEndpoint, " ", a.Issuer, " ", a.scopes), origin, ""); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// A gateway before a server may admit nobody without the headers of the settings. They are sent to the server's
// origin alone, whatever its metadata names, and wherever it redirects to.
func TestHeadersOfTheServer(t *testing.T) {
	leaked := false
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked = leaked || r.Header.Get("X-Gate") != ""
		at := "http://" + r.Host
		_, _ = fmt.Fprintf(w, `{"issuer":"%s","token_endpoint":"%[1]s/a","authorization_endpoint":"%[1]s/b"}`, at)
	}))
	defer other.Close()
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Gate") != "open" || r.Header.Get("Authorization") != "":
			w.WriteHeader(http.StatusForbidden)
		case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource/moved"):
			http.Redirect(w, r, other.URL, http.StatusFound)
		case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource"):
			_, _ = fmt.Fprintf(w, `{"resource":"http://%s/mcp","authorization_servers":["%s"]}`, r.Host, other.URL)
		}
	}))
	defer gate.Close()
	for path, issuer := range map[string]string{"/mcp": other.URL, "/moved": ""} {
		c := New(settings.Server{URL: gate.URL + path,
			Headers: []settings.Pair{{Name: "X-Gate", Value: "open"}, {Name: "authorization", Value: "x"}}}, nil, nil)
		w := c.web()
		a, err := c.discover(t.Context(), w, challenge{})
		w.close()
		if issuer != "" && (err != nil || a.Issuer != issuer) || issuer == "" && err == nil {
			t.Errorf("%s: %+v, %v", path, a, err)
		}
	}
	if leaked {
		t.Error("another origin got the header")
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
