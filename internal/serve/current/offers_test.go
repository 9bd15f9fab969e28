package current

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcptest"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// nobody has subscribed to anything.
type nobody struct{}

func (nobody) Renew(context.Context, *offer.Offer)           {}
func (nobody) Servers(*offer.Offer) []*mcpclient.Source      { return nil }
func (nobody) OfClient(string) bool                          { return false }
func warns(t *testing.T) func(registry.Diagnostic)           { return func(d registry.Diagnostic) { t.Error(d) } }
func outcome(context.Context, error) (word string, code int) { return "", 0 }

// newSession makes a session with the server at an address.
func newSession(t *testing.T, url string) *engine.Session {
	t.Helper()
	dir := t.TempDir()
	environ := append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir+"/state", "XDG_CACHE_HOME="+dir+"/cache", "XDG_CONFIG_HOME="+dir+"/config")
	file := filepath.Join(dir, "s.json")
	text := fmt.Sprintf(`{"mcpServers":{"m":{"httpUrl":%q,"trust":true,"protocol":"legacy"}},"cache":{"discovery":"0"}}`, url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, _, err := settings.Load(settings.Options{Dir: dir, Files: []string{file}, NoUser: true, Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	s, err := engine.New(t.Context(), set, engine.Deps{
		Dir: dir, Environ: environ, Folders: &state.Folders{Environ: environ}, Asker: question.Asker{},
		Warn: warns(t), Outcome: outcome,
	}, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A session that was replaced is closed when the last request that uses it has ended.
func TestReplacedSessionIsOpenForItsRequests(t *testing.T) {
	handler, err := mcptest.Handler("--protocol", "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			closed <- struct{}{}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	var changed []bool
	o := New(Options{
		Whole: offer.Profile{Select: func(ctx context.Context, s *engine.Session) (*registry.Registry, []engine.Found, error) {
			reg, err := s.Tools.All(ctx)
			return reg, engine.FoundIn(reg, reg.Tools()), err
		}},
		Profiles: func(*engine.Session) offer.Profiles { return nil },
		Idle:     func() time.Duration { return 0 }, Subscriptions: nobody{},
		Changed: func(_ context.Context, first bool) { changed = append(changed, first) },
		Log:     slog.New(slog.DiscardHandler), Warn: warns(t),
	})
	load := func() *engine.Session {
		t.Helper()
		s := newSession(t, server.URL)
		if err := o.Load(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := load()
	early, doneEarly := o.Use(t.Context())
	second := load()
	t.Cleanup(second.Close)
	late, doneLate := o.Use(t.Context())
	doneLate()
	o.Wait()
	if early.Session != first || late.Session != second || early.Tool("echo") == nil {
		t.Error("a request does not use what was offered when it began")
	}
	if len(closed) != 0 {
		t.Error("a session is closed that a request uses")
	}
	doneEarly()
	o.Wait()
	if len(closed) != 1 {
		t.Errorf("%d sessions are closed after the last request", len(closed))
	}
	if !slices.Equal(changed, []bool{true, false}) {
		t.Errorf("changed: %v", changed)
	}
}
