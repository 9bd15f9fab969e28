package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// The client metadata document in docs says of the client what a registration says.
func TestPublishedDocument(t *testing.T) {
	data, err := os.ReadFile("../../docs/client.json")
	if err != nil {
		t.Fatal(err)
	}
	var id struct {
		ID string `json:"client_id"`
	}
	var got oauthex.ClientRegistrationMetadata
	if err := json.Unmarshal(data, &id); err != nil || !isDocument(id.ID) {
		t.Errorf("client_id %q is not the address of a document (%v)", id.ID, err)
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := clientMetadata("http://127.0.0.1:8765/callback", methodNone)
	want.RedirectURIs = append(want.RedirectURIs, "http://127.0.0.1/callback")
	if diff := cmp.Diff(want, &got); diff != "" {
		t.Error("-want +got:\n", diff)
	}
}

// The response to a registration may contain a secret, so errors do not quote
// it. They contain the reason for the failure.
func TestRegistrationThatFails(t *testing.T) {
	const advice = "; register a client there yourself and set its id as oauth.clientId"
	tests := []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"refused", 400, `{"error":"invalid_redirect_uri","error_description":"s3cret"}`, `it returned "invalid_redirect_uri"` + advice},
		{"not allowed", 403, `s3cret`, "it answered 403 Forbidden" + advice},
		{"redirected", 307, ``, "it answered 307 Temporary Redirect" + advice},
		{"busy", 503, ``, "it answered 503 Service Unavailable"},
		{"broken", 201, `{"client_id":"a","client_secret":"s3cret"`, "its answer is not JSON"},
		{"no client id", 201, `{"client_secret":"s3cret"}`, "its answer has no client_id"},
		{"refused with another status", 403, `{"error":"invalid_client_metadata","error_description":"s3cret"}`, `it returned "invalid_client_metadata"` + advice},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.wrapped(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/register" {
						next.ServeHTTP(w, r)
						return
					}
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("Location", "/elsewhere")
					w.WriteHeader(tt.status)
					_, _ = w.Write([]byte(tt.body))
				})
			})
			_, err := s.client(t, nil).Login(t.Context(), LoginOptions{Browse: browse(t)})
			if err == nil || !strings.HasSuffix(err.Error(), ": "+tt.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// Answers to registrations repeat the request, and servers get the types of what few clients read wrong.
func TestOddRegistrations(t *testing.T) {
	for _, body := range []string{
		`{"client_id":"a","client_id_issued_at":1700000000.5,"redirect_uris":"http://127.0.0.1/callback","scope":["read"]}`,
		`{"client_id":"a","client_id_issued_at":"2026-01-01T00:00:00Z","client_secret":null,"client_secret_expires_at":null,"contacts":null}`,
		`{"client_id":"a","client_secret":"","client_secret_expires_at":"0","token_endpoint_auth_method":"client_secret_basic","logo_uri":""}`,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(body))
		}))
		c := New(settings.Server{URL: s.URL + "/mcp"}, nil, nil)
		w := c.web()
		got, err := c.register(t.Context(), w, &authority{metadata: metadata{RegistrationEndpoint: s.URL}}, "http://127.0.0.1/callback", nil)
		w.close()
		s.Close()
		want := identity{ID: "a", Method: methodNone, RedirectURI: "http://127.0.0.1/callback", Registered: true}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", body, err, diff)
		}
	}
}

// A refresh token that is refused needs a login, whatever the authorization server calls that; trouble of its own does not.
func TestRenewalsThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		needed bool
	}{
		{400, `{"error":"invalid_grant"}`, true},
		{200, `{"error":"bad_refresh_token","error_description":"s3cret"}`, true},
		{400, `{"error":"invalid_request"}`, true},
		{400, `{"error":{"code":"invalid_grant"}}`, true},
		{400, `refresh token s3cret has expired`, true},
		{401, `{"message":"Unauthorized"}`, true},
		{429, `{"error":"slow_down"}`, false},
		{400, `{"error":"temporarily_unavailable"}`, false},
		{500, `{"error":"server_error"}`, false},
		{502, `<html>`, false},
	} {
		s := newSite(t)
		c := s.client(t, nil)
		s.login(t, c)
		s.wrapped(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			})
		})
		_, err := c.Received(t.Context(), held(t, c), http.StatusUnauthorized, nil)
		if err == nil || errors.Is(err, registry.ErrNeedsLogin) != tt.needed || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%d %s: %v", tt.status, tt.body, err)
		}
	}
}

// Some authorization servers give a client only the scopes with which it was registered, and others refuse to
// register one that names any.
func TestScopesOfRegisteredClients(t *testing.T) {
	for _, refused := range []string{"", "openid"} {
		s := newSite(t, "--scopes", "read write "+refused)
		allowed := ""
		s.wrapped(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/register":
					var m struct{ Scope string }
					body, err := io.ReadAll(r.Body)
					if err == nil {
						err = json.Unmarshal(body, &m)
					}
					if err != nil || refused != "" && m.Scope != "" {
						http.Error(w, `{"error":"invalid_client_metadata"}`, http.StatusBadRequest)
						return
					}
					allowed = m.Scope
					r.Body = io.NopCloser(bytes.NewReader(body))
				case "/authorize":
					for _, scope := range strings.Fields(r.FormValue("scope")) {
						if refused == "" && !strings.Contains(" "+allowed+" ", " "+scope+" ") {
							http.Redirect(w, r, r.FormValue("redirect_uri")+"?error=invalid_scope&state="+r.FormValue("state"), http.StatusFound)
							return
						}
					}
				}
				next.ServeHTTP(w, r)
			})
		})
		clients := 1
		s.login(t, s.client(t, nil))
		s.login(t, s.client(t, nil), "read")
		if refused == "" {
			s.login(t, s.client(t, nil), "read", "admin")
			clients++
		}
		if n := s.Count("register"); n != clients {
			t.Errorf("%d clients were registered, want %d", n, clients)
		}
	}
}

// An authorization server that has forgotten the registered client says so only to the person in the browser, or
// refuses to renew the token. The next login registers another client, instead of failing in the same way.
func TestForgottenClients(t *testing.T) {
	// login returns the error of a login by a person who gives up when the browser shows an error.
	login := func(c *Client) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := c.Login(ctx, LoginOptions{Browse: func(ctx context.Context, address string) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
			if err != nil {
				return err
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode >= http.StatusBadRequest {
				cancel()
			}
			return nil
		}})
		return err
	}
	t.Run("in the browser", func(t *testing.T) {
		s := newSite(t)
		if err := login(s.client(t, nil)); err != nil {
			t.Fatal(err)
		}
		s.Forget()
		if err := login(s.client(t, nil)); !errors.Is(err, context.Canceled) {
			t.Errorf("the first login after that ends with %v", err)
		}
		for range 2 { // the client that works is not replaced again
			if err := login(s.client(t, nil)); err != nil {
				t.Error(err)
			}
			if n := s.Count("register"); n != 2 {
				t.Errorf("%d clients were registered", n)
			}
		}
	})
	t.Run("at a renewal", func(t *testing.T) {
		s := newSite(t)
		c := s.client(t, nil)
		if err := login(c); err != nil {
			t.Fatal(err)
		}
		token := held(t, c)
		s.Forget()
		if _, err := c.Received(t.Context(), token, http.StatusUnauthorized, nil); !errors.Is(err, registry.ErrNeedsLogin) {
			t.Errorf("the renewal ends with %v", err)
		}
		if err := login(s.client(t, nil)); err != nil {
			t.Error(err)
		}
	})
}
