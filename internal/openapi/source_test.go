package openapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/openapi/spec"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// memory remembers like the cache of a run.
type memory struct{ known Known }

func (m *memory) Load(context.Context) (Known, error) { return m.known, nil }

func (m *memory) Save(_ context.Context, known Known) {
	if m.known.Failure = known.Failure; known.Failure == nil {
		m.known = known
	}
}

// A document at an address is asked for again after a minute, and after a second if that
// failed; it counts as changed only if its content has. A source that takes the place of
// another begins with what that one read.
func TestDocumentsAreAskedForAgain(t *testing.T) {
	var document atomic.Value
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if document.Load() == "" {
			http.Error(w, "gone", http.StatusGone)
			return
		}
		fmt.Fprintf(w, `{"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {"/%s": {"get": {"responses": {}}}}}`, document.Load())
	}))
	t.Cleanup(server.Close)
	document.Store("one")
	remembered := &memory{}
	options := Options{API: apiAt(server.URL+"/api.json", server.URL), Limits: Limits{Document: 1 << 20, Schema: 1 << 20}, Memory: remembered}
	s := New(options)
	ago := func(d time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tried = time.Now().Add(-d)
	}
	if s.Due() {
		t.Error("due before it was read")
	}
	if _, _, err := s.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	for d, due := range map[time.Duration]bool{askPause - time.Second: false, askPause: true} {
		if ago(d); s.Due() != due {
			t.Errorf("after %s: due %v", d, !due)
		}
	}
	for _, step := range []struct {
		document string
		changed  bool
		state    State
	}{{"one", false, Ready}, {"two", true, Ready}, {"", false, Failed}, {"two", true, Ready}, {"two", false, Ready}} {
		document.Store(step.document)
		changed, err := s.Again(t.Context())
		if changed != step.changed || s.Info().State != step.state || errors.Is(err, registry.ErrSourceFailed) != (step.state == Failed) {
			t.Errorf("%q: changed %v, state %d, %v", step.document, changed, s.Info().State, err)
		}
		if s.Due() {
			t.Errorf("%q: due at once", step.document)
		}
		if ago(retryPause); s.Due() != (step.state == Failed) {
			t.Errorf("%q: due after a second: %v", step.document, s.Due())
		}
	}
	before := asked.Load()
	options.Unasked = true
	next := New(options)
	if tools, _, err := next.Discover(t.Context()); err != nil || len(tools) != 1 || asked.Load() != before {
		t.Errorf("%d tools, %d requests, %v", len(tools), asked.Load()-before, err)
	}
	if _, err := next.Again(t.Context()); err != nil || asked.Load() == before {
		t.Errorf("the second time it was not asked for: %v", err)
	}
}

// A document that did not come in time is not waited for again by the next run, which says the
// same; a file is read again in any case.
func TestRecentFailures(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	options := Options{API: apiAt(server.URL+"/api.json", server.URL), Limits: Limits{Document: 1 << 20, Schema: 1 << 20}, Memory: &memory{}}
	options.API.ConnectTimeout = 50 * time.Millisecond
	_, _, first := New(options).Discover(t.Context())
	_, _, second := New(options).Discover(t.Context())
	if first == nil || second == nil || first.Error() != second.Error() || asked.Load() != 1 {
		t.Errorf("%d requests; %v; %v", asked.Load(), first, second)
	}
	file := filepath.Join(t.TempDir(), "api.json")
	if err := os.WriteFile(file, []byte(`{"openapi": "3.1.0", "paths": {"/a": {"get": {}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	options.API.Spec = file
	if tools, _, err := New(options).Discover(t.Context()); err != nil || len(tools) != 1 {
		t.Errorf("%d tools of a file, %v", len(tools), err)
	}
}

// An approval and a pin of a tool end when its requests go elsewhere.
func TestIdentity(t *testing.T) {
	of := func(spec0, base, method, path, server string) string {
		s := New(Options{API: apiAt(spec0, base)})
		return string(s.identity(&spec.Operation{Method: method, Path: path, Server: server}))
	}
	first := of("api.json", "", "GET", "/a", "https://a.example")
	for _, other := range []string{
		of("other.json", "", "GET", "/a", "https://a.example"), of("api.json", "https://a.example", "GET", "/a", "https://a.example"),
		of("api.json", "", "POST", "/a", "https://a.example"), of("api.json", "", "GET", "/b", "https://a.example"), of("api.json", "", "GET", "/a", "https://b.example"),
	} {
		if other == first {
			t.Errorf("the same as %s", first)
		}
	}
	if a, b := of("api.json", "https://a.example", "GET", "/a", "https://x"), of("api.json", "https://a.example", "GET", "/a", "https://y"); a != b {
		t.Errorf("the servers of the document count although there is baseUrl: %s, %s", a, b)
	}
}

// Credentials from a file or a command are read again when the API refuses them.
func TestCredentialsThatExpire(t *testing.T) {
	for name, auth := range map[string]settings.Auth{
		"bearer": {Bearer: "cmd:print-token"}, "basic": {Basic: &settings.Basic{Username: "me", Password: "file:password"}},
		"key": {APIKey: &settings.APIKey{In: "query", Name: "key", Value: "cmd:print-token"}},
	} {
		t.Run(name, func(t *testing.T) {
			good, token := "old", "old"
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/spec" {
					_, _ = io.WriteString(w, `{"openapi":"3.0.0","info":{"title":"x","version":"1"},"paths":{"/it":{"post":{"operationId":"put","requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{"a":{"type":"string"}}}}}},"responses":{}}}}}`)
					return
				}
				_, password, _ := r.BasicAuth()
				if !slices.Contains([]string{"Bearer " + good, good}, cmp.Or(password, r.Header.Get("Authorization"), r.URL.Query().Get("key"))) {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				_, _ = io.Copy(w, r.Body)
			}))
			defer s.Close()
			api := apiAt(s.URL+"/spec", s.URL)
			api.Auth = []settings.Auth{auth}
			source := New(Options{API: api, Limits: Limits{Document: 1 << 20, Result: 1 << 20, Schema: 1 << 20, Tools: 10},
				Expand: func(_ context.Context, a settings.API) (settings.API, error) {
					way := a.Auth[0]
					switch {
					case way.Bearer != "":
						way.Bearer = token
					case way.Basic != nil:
						way.Basic = &settings.Basic{Username: "me", Password: token}
					default:
						way.APIKey = &settings.APIKey{In: "query", Name: "key", Value: token}
					}
					a.Auth = []settings.Auth{way}
					return a, nil
				}, Secrets: func() []string { return []string{token} }})
			tools, _, err := source.Discover(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			good, token = "new-secret", "new-secret"
			r, err := tools[0].Run(t.Context(), registry.Call{Params: json.RawMessage(`{"a":"b new-secret"}`)})
			if err != nil || r.IsError || !strings.Contains(r.Text(), `"b `) || strings.Contains(r.Text(), "new-secret") {
				t.Errorf("%q, %v", r.Text(), err)
			}
		})
	}
}

// A call whose connection breaks may have had effects, unless it only reads or was not sent.
func TestCallsWithoutAnswer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/spec" {
			_, _ = io.WriteString(w, `{"openapi":"3.0.0","info":{"title":"x","version":"1"},"paths":{"/it":{"post":{"operationId":"put","responses":{}},"get":{"operationId":"get","responses":{}}}}}`)
			return
		}
		panic(http.ErrAbortHandler)
	}))
	defer s.Close()
	for base, want := range map[string]map[string]bool{s.URL: {"put": true, "get": false}, "http://127.0.0.1:1": {"put": false, "get": false}} {
		source := New(Options{API: apiAt(s.URL+"/spec", base), Limits: Limits{Document: 1 << 20, Result: 1 << 20, Schema: 1 << 20, Tools: 10}})
		tools, _, err := source.Discover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			_, err := tool.Run(t.Context(), registry.Call{Params: json.RawMessage(`{}`)})
			advice, ok := errors.AsType[unansweredError](err)
			if ok != want[tool.Name] || !errors.Is(err, registry.ErrSourceFailed) || ok && !strings.Contains(advice.Advice(), "may have had effects") {
				t.Errorf("%s at %s: %v", tool.Name, base, err)
			}
		}
	}
}
