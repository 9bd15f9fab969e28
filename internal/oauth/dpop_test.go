package oauth

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/settings"
)

// A server that issues bound tokens gets a proof in each request, with the nonce of its last
// response; a request is repeated only until a nonce is known.
func TestBoundTokens(t *testing.T) {
	for name, tt := range map[string]struct {
		flags []string
		sends int // requests to the server for three calls
	}{
		"without nonces": {nil, 3},
		"with nonces":    {[]string{"--nonces"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, append(tt.flags, "--dpop")...)
			c := s.client(t, nil)
			s.login(t, c)
			for range 3 {
				if !s.takes(t, c) {
					t.Error("the request was refused")
				}
			}
			if n := s.Count("mcp"); n != tt.sends {
				t.Errorf("%d requests to the server, want %d", n, tt.sends)
			}
			if s.accepted(t, held(t, c)) {
				t.Error("the token is accepted without a proof")
			}
			before := held(t, c)
			s.Expire()
			if !s.takes(t, s.client(t, nil)) { // as another process
				t.Error("after the renewal the request was refused")
			}
			if held(t, s.client(t, nil)) == before {
				t.Error("the token was not renewed")
			}
		})
	}
}

// takes sends a message to the MCP server as the wire session does, and reports whether the server
// accepted its token.
func (s *site) takes(t *testing.T, c *Client) bool {
	t.Helper()
	h, err := wire.NewHTTP(settings.Server{URL: s.Resource}, &wire.CurrentLimit{}, 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.Authorize(c, "")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Resource, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode != http.StatusUnauthorized
}

// oauth.dpop decides whether tokens are bound.
func TestDPoPSetting(t *testing.T) {
	for _, tt := range []struct {
		setting string
		flags   []string
		bound   bool
		err     string
	}{
		{"auto", []string{"--dpop"}, true, ""},
		{"auto", nil, false, ""},
		{"require", []string{"--dpop"}, true, ""},
		{"require", nil, false, "does not advertise DPoP with ES256, which oauth.dpop requires"},
		{"off", []string{"--dpop"}, false, `"invalid_dpop_proof"`},
		{"off", nil, false, ""},
	} {
		t.Run(tt.setting+strings.Join(tt.flags, ""), func(t *testing.T) {
			s := newSite(t, tt.flags...)
			c := s.client(t, &settings.OAuth{DPoP: tt.setting})
			_, err := c.Login(t.Context(), LoginOptions{Browse: browse(t)})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want an error with %s", err, tt.err)
				}
				return
			}
			if err != nil || c.record.Token.Bound != tt.bound {
				t.Errorf("bound: %t, %v", err == nil && c.record.Token.Bound, err)
			}
		})
	}
}

// A server that advertises DPoP but issues a bearer token is refused if binding is required.
func TestBearerTokenWhereBindingIsRequired(t *testing.T) {
	s := newSite(t)
	c := s.client(t, &settings.OAuth{DPoP: settings.DPoPRequire, AuthorizationURL: s.Issuer + "/authorize", TokenURL: s.Issuer + "/token", RegistrationURL: s.Issuer + "/register"})
	_, err := c.Login(t.Context(), LoginOptions{Browse: browse(t)})
	if err == nil || !strings.Contains(err.Error(), "it issued a bearer token, but oauth.dpop requires") {
		t.Errorf("got %v", err)
	}
}

// A proof names the address without its query, the hash of the token, and the nonce.
func TestProof(t *testing.T) {
	key, err := (&server{config: settings.OAuth{DPoP: settings.DPoPRequire, TokenURL: "https://a.example/token"}}).proofKey(&authority{}, "")
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "https://a.example/b%2Fc?secret=1", nil)
	if err := addProof(r, key, "token", "n0nce", time.Unix(1000, 0)); err != nil {
		t.Fatal(err)
	}
	data, err := base64.RawURLEncoding.DecodeString(strings.Split(r.Header.Get("DPoP"), ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(data, &claims); err != nil {
		t.Fatal(err)
	}
	delete(claims, "jti")
	want := map[string]any{"htm": "GET", "htu": "https://a.example/b%2Fc", "iat": 1000.0, "nonce": "n0nce", "ath": "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A"}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

// A nonce that cannot be in a header, or is very long, is not repeated.
func TestHostileNonce(t *testing.T) {
	for nonce, want := range map[string]string{"a-1": "a-1", "a b": "", "a\x7f": "", strings.Repeat("a", 2000): ""} {
		if got := takeNonce(http.Header{"Dpop-Nonce": {nonce}}); got != want {
			t.Errorf("%.10q: got %q", nonce, got)
		}
	}
}
