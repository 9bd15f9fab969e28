package oauth

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/mcptest"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// The test binary is also the program that renews a login in parallel with
// others.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TOOLREG_TEST_RENEW"); dir != "" {
		os.Exit(renewAlone(dir, os.Getenv("TOOLREG_TEST_SERVER"), os.Getenv("TOOLREG_TEST_STALE")))
	}
	os.Exit(m.Run())
}

// renewAlone is one run of toolreg whose token was refused; it prints the new
// token.
func renewAlone(dir, server, stale string) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := New(settings.Server{Name: "test", URL: server}, storeAt(dir), nil)
	if again, err := c.Received(ctx, stale, http.StatusUnauthorized, wanting("Bearer")); err != nil || !again {
		fmt.Fprintln(os.Stderr, again, err)
		return 1
	}
	token, err := c.Token(ctx)
	fmt.Print(token)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// wanting returns the header of a refusal.
func wanting(challenges ...string) http.Header { return http.Header{"Www-Authenticate": challenges} }

func storeAt(dir string) *Store {
	return &Store{Open: func() (*state.Dir, error) { return state.OpenDir(dir) }}
}

// site is an MCP server with its authorization server.
type site struct {
	*mcptest.Authority
	dir string

	mu   sync.Mutex
	wrap func(http.Handler) http.Handler
}

// wrapped puts a handler around the authorization server, nil for none.
func (s *site) wrapped(f func(http.Handler) http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrap = f
}

func newSite(t *testing.T, args ...string) *site {
	t.Helper()
	a, err := mcptest.NewAuthority(args...)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Authority: a, dir: filepath.Join(t.TempDir(), "toolreg")}
	mcp := httptest.NewUnstartedServer(a.MCP())
	as := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var h http.Handler = a
		s.mu.Lock()
		if s.wrap != nil {
			h = s.wrap(h)
		}
		s.mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	a.Resource, a.Issuer = "http://"+mcp.Listener.Addr().String()+"/mcp", "http://"+as.Listener.Addr().String()
	mcp.Start()
	as.Start()
	t.Cleanup(mcp.Close)
	t.Cleanup(as.Close)
	return s
}

func (s *site) client(t *testing.T, o *settings.OAuth) *Client {
	t.Helper()
	if o != nil && o.Grant == "" {
		o.Grant = settings.GrantAuthorizationCode
	}
	return New(settings.Server{Name: "test", URL: s.Resource, OAuth: o}, storeAt(s.dir), func(err error) { t.Logf("warning: %v", err) })
}

// browse opens a URL like a browser on a page that requires no clicks.
func browse(t *testing.T) func(context.Context, string) error {
	return func(ctx context.Context, address string) error {
		go func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if resp, err := http.DefaultClient.Do(r); err == nil {
				_ = resp.Body.Close()
			}
		}()
		return nil
	}
}

// agrees allows every issuer to receive secrets.
func agrees(context.Context, string, string) (bool, error) { return true, nil }

func (s *site) login(t *testing.T, c *Client, scopes ...string) Login {
	t.Helper()
	l, err := c.Login(t.Context(), LoginOptions{Scopes: scopes, Browse: browse(t), Agree: agrees})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// held returns the token of c, which must be logged in.
func held(t *testing.T, c *Client) string {
	t.Helper()
	token, err := c.Token(t.Context())
	if err != nil || token == "" {
		t.Fatalf("token %q, %v", token, err)
	}
	return token
}

// accepted reports whether the MCP server accepts a token.
func (s *site) accepted(t *testing.T, token string) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Resource, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode != http.StatusUnauthorized
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
