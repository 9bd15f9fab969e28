package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
)

// keys issues tokens, the next one after each refusal.
type keys struct {
	mu      sync.Mutex
	tokens  []string
	refused []string // the challenges it was called with
	err     error    // returned when no tokens are left
}

func (k *keys) Token(context.Context) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tokens[0], nil
}

func (k *keys) Sign(r *http.Request, token string) error {
	r.Header.Set("Authorization", "Bearer "+token)
	return nil
}

func (k *keys) Received(_ context.Context, sent string, status int, header http.Header) (bool, error) {
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		return false, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused = append(k.refused, fmt.Sprintf("%s %d %s", sent, status, header.Values("WWW-Authenticate")))
	if sent == k.tokens[0] {
		if len(k.tokens) == 1 {
			return false, k.err
		}
		k.tokens = k.tokens[1:]
	}
	return true, nil
}

func (k *keys) use(o *Options) { o.Auth = func(settings.Server) wire.Authorizer { return k } }

// locked accepts only requests with the token, and repeats the token in its
// refusal.
func locked(token string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if sent := r.Header.Get("Authorization"); sent != "Bearer "+token {
				w.Header().Set("WWW-Authenticate", "Bearer scope=x")
				http.Error(w, "not with "+sent, http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// What a server asks of a login is understood behind a gateway that renames the header.
func TestRenamedChallenge(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Remapped-WWW-Authenticate", "Bearer scope=x")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer web.Close()
	k := &keys{tokens: []string{"first"}, err: registry.ErrNeedsLogin}
	if _, _, err := source(t, httpServer(web.URL), k.use).Discover(t.Context()); !errors.Is(err, registry.ErrNeedsLogin) {
		t.Error(err)
	}
	if len(k.refused) == 0 || k.refused[0] != "first 401 [Bearer scope=x]" {
		t.Errorf("refusals %q", k.refused)
	}
}

func TestTokensOverEachTransport(t *testing.T) {
	for name, flags := range map[string][]string{
		"modern": nil, "legacy": {"--protocol", "2025-06-18"}, "sse": {"--sse", "--protocol", "2024-11-05"},
	} {
		t.Run(name, func(t *testing.T) {
			web := serve(t, locked("second"), flags...)
			k := &keys{tokens: []string{"first", "second"}, err: registry.ErrNeedsLogin}
			s := source(t, settings.Server{Name: "test", URL: web.URL, ConnectTimeout: httpServer("").ConnectTimeout}, k.use)
			tools, _ := discovered(t, s)
			if r := run(t, tools, "echo", `{"text":"let in"}`); r.Text() != "let in" {
				t.Errorf("%+v", r)
			}
			if diff := cmp.Diff([]string{"first 401 [Bearer scope=x]"}, k.refused); diff != "" && name != "sse" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

// Some servers of the older transport take the token as a query parameter.
func TestTokenAsParameter(t *testing.T) {
	web := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("key") != "t0ken" || r.Header.Get("Authorization") != "" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, "--sse", "--protocol", "2024-11-05")
	server := settings.Server{Name: "test", URL: web.URL, Type: "sse", OAuth: &settings.OAuth{TokenParamName: "key"}}
	tools, _ := discovered(t, source(t, server, (&keys{tokens: []string{"t0ken"}}).use))
	if r := run(t, tools, "echo", `{"text":"let in"}`); r.Text() != "let in" {
		t.Errorf("%+v", r)
	}
}

// A server that requires a login has its own state. It is not tried in other
// ways, and the token that it repeats is not shown.
func TestNeedsLogin(t *testing.T) {
	for name, known := range map[string]string{"unknown": "", "known": "legacy", "known by SSE": "sse"} {
		t.Run(name, func(t *testing.T) {
			web := serve(t, locked("nothing"))
			var states []State
			k := &keys{tokens: []string{"t0ken"}, err: fmt.Errorf("%w: log in", registry.ErrNeedsLogin)}
			s := source(t, settings.Server{Name: "test", URL: web.URL}, k.use, func(o *Options) {
				o.Memory = &memory{known: Known{Protocol: known}}
				o.OnState = func(_ string, state State) { states = append(states, state) }
			})
			_, _, err := s.Discover(t.Context())
			if !errors.Is(err, registry.ErrNeedsLogin) || !errors.Is(err, registry.ErrSourceFailed) || err.Error() != `server "test": login: needs login: log in` {
				t.Errorf("%v", err)
			}
			if info := s.Info(); info.State != StateNeedsLogin || info.Error != err.Error() {
				t.Errorf("%+v", info)
			}
			if states[len(states)-1] != StateNeedsLogin {
				t.Errorf("states %v", states)
			}
			for _, asked := range web.asked() {
				if strings.HasPrefix(asked, "GET") && known != "sse" {
					t.Errorf("it was asked %s", asked)
				}
			}
		})
	}
}

// A refusal that a login would not change is reported as received, without the
// token.
func TestRefusalDoesNotShowTheToken(t *testing.T) {
	web := serve(t, locked("nothing"))
	k := &keys{tokens: []string{"t0ken"}}
	_, _, err := source(t, httpServer(web.URL), k.use).Discover(t.Context())
	if err == nil || errors.Is(err, registry.ErrNeedsLogin) || !strings.Contains(err.Error(), "401 Unauthorized: not with Bearer ***") {
		t.Errorf("%v", err)
	}
}

// repeats answers tool calls with an error that contains what was sent.
func repeats(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Contains(body, []byte(`"tools/call"`)) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
			return
		}
		var asked struct{ ID json.RawMessage }
		_ = json.Unmarshal(body, &asked) // without an id the call fails otherwise
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":%q}}`, asked.ID, "sent: "+r.Header.Get("Authorization")+" "+r.Header.Get("X-Key"))
	})
}

// hides makes some texts the secrets of the settings.
func hides(secrets ...string) func(*Options) {
	return func(o *Options) { o.Hide = secret.NewReplacer(secrets).Replace }
}

// An error that repeats what was sent does not show tokens or secrets of the
// settings.
func TestErrorsDoNotShowSecrets(t *testing.T) {
	web := serve(t, repeats)
	login := httpServer(web.URL)
	login.Headers = []settings.Pair{{Name: "X-Key", Value: "key-secret"}}
	basic := httpServer(strings.Replace(web.URL, "http://", "http://ada:pass-word@", 1))
	for want, server := range map[string]settings.Server{
		"MCP error -1: sent: Bearer *** ***": login,
		"MCP error -1: sent: Basic *** ":     basic,
	} {
		tools, _ := discovered(t, source(t, server, (&keys{tokens: []string{"access-t0ken"}}).use, hides("key-secret", "ada:pass-word")))
		if r := run(t, tools, "echo", `{"text":"hi"}`); r.Text() != want {
			t.Errorf("%q, want %q", r.Text(), want)
		}
	}
}

// Tokens are sent only to the configured origin.
func TestTokensStayAtTheOrigin(t *testing.T) {
	other := serve(t, nil)
	web := serve(t, func(http.Handler) http.Handler {
		return http.RedirectHandler(other.URL, http.StatusTemporaryRedirect)
	})
	_, _, err := source(t, httpServer(web.URL), (&keys{tokens: []string{"t0ken"}}).use).Discover(t.Context())
	if err == nil || len(other.asked()) > 0 {
		t.Errorf("%v, asked %v", err, other.asked())
	}
}

// An Authorization header in the settings takes precedence over a login.
func TestAuthorizationHeaderPrecedesLogin(t *testing.T) {
	web := serve(t, locked("mine"))
	server := httpServer(web.URL)
	server.Headers = []settings.Pair{pair("authorization", "Bearer mine")}
	s := source(t, server, func(o *Options) {
		o.Auth = func(settings.Server) wire.Authorizer { t.Error("asked for a token"); return nil }
	})
	discovered(t, s)
}

// A tool that requires more permissions fails with that error, and the others
// still run.
func TestToolThatNeedsMorePermissions(t *testing.T) {
	web := serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Name") == "add" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	k := &keys{tokens: []string{"t0ken"}, err: registry.ErrNeedsLogin}
	tools, _ := discovered(t, source(t, httpServer(web.URL), k.use))
	add := tools["add"]
	if _, err := add.Run(t.Context(), registry.Call{Tool: "add", Params: []byte(`{"a":1,"b":2}`)}); !errors.Is(err, registry.ErrNeedsLogin) {
		t.Errorf("%v", err)
	}
	if r := run(t, tools, "echo", `{"text":"still here"}`); r.Text() != "still here" {
		t.Errorf("%+v", r)
	}
}
