package middleware

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
)

// complete returns a cache with what most tests do not care about.
func complete(c Cache) Cache {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Failed == nil {
		c.Failed = func(error) {}
	}
	c.Credentials = func(context.Context, *registry.Tool) (string, error) { return "", nil }
	c.Key = func(context.Context) ([]byte, error) { return nil, nil }
	return c
}

// counter returns a fixed result and counts its runs.
func counter(r registry.Result, n *int) runFunc {
	return func(context.Context, registry.Call) (registry.Result, error) {
		*n++
		return r, nil
	}
}

func TestCacheReturnsCompleteResult(t *testing.T) {
	want := registry.Result{
		Summary: "s",
		Content: []registry.Content{
			registry.TextContent("text"), {Type: registry.ContentImage, Data: []byte{0, 255}, MIMEType: "image/png"},
			{Type: registry.ContentResource, URI: "x:y", Data: []byte{}, MIMEType: "a/b", Annotations: json.RawMessage(`{"a":1}`)},
		},
		Display:    registry.Display{Diff: &registry.FileDiff{FileDiff: "d", FileName: "f"}, Todos: []registry.Todo{{ID: "1"}}},
		Structured: json.RawMessage(`{"n":12345678901234567890}`), Meta: json.RawMessage(`{}`),
		Locations: []registry.Location{{Path: "p", Line: 3}}, Duration: 5,
	}
	runs := 0
	tool := complete(Cache{Dir: openDir(t), TTL: time.Minute}).Wrap(reader(counter(want, &runs)))
	for i, params := range []string{`{"a":1,"b":2}`, `{"b": 2, "a": 1}`} {
		got, err := tool.Run(t.Context(), call(params))
		if err != nil {
			t.Fatal(err)
		}
		want.Cached = i > 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("run %d (-want +got):\n%s", i, diff)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
	if _, err := tool.Run(t.Context(), call(`{"a":2}`)); err != nil || runs != 2 {
		t.Errorf("other params: %d runs, %v", runs, err)
	}
}

func TestCacheKey(t *testing.T) {
	now := time.Now()
	base := complete(Cache{Dir: openDir(t), TTL: time.Minute, Scope: "here", Now: func() time.Time { return now }})
	tool := reader(nil)
	for name, tt := range map[string]struct {
		change func(*Cache, *registry.Tool)
		runs   int
	}{
		"the same":         {func(*Cache, *registry.Tool) {}, 0},
		"another name":     {func(_ *Cache, t *registry.Tool) { t.Name = "other" }, 1},
		"another schema":   {func(_ *Cache, t *registry.Tool) { t.InputSchema = json.RawMessage(`{}`) }, 1},
		"another command":  {func(_ *Cache, t *registry.Tool) { t.Identity = json.RawMessage(`{"command":"x"}`) }, 1},
		"another project":  {func(c *Cache, _ *registry.Tool) { c.Scope = "there" }, 1},
		"too old":          {func(c *Cache, _ *registry.Tool) { c.Now = func() time.Time { return now.Add(time.Minute) } }, 1},
		"from the future":  {func(c *Cache, _ *registry.Tool) { c.Now = func() time.Time { return now.Add(-time.Hour) } }, 1},
		"a shorter life":   {func(c *Cache, _ *registry.Tool) { c.TTL = 0 }, 1},
		"a tool that acts": {func(_ *Cache, t *registry.Tool) { t.Category = registry.CategoryWrite }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			first := tool
			first.Run = counter(registry.TextResult("x"), &runs)
			if _, err := base.Wrap(first).Run(t.Context(), call("{}")); err != nil {
				t.Fatal(err)
			}
			runs = 0
			c, second := base, first
			tt.change(&c, &second)
			if _, err := c.Wrap(second).Run(t.Context(), call("{}")); err != nil || runs != tt.runs {
				t.Errorf("%d runs, want %d; %v", runs, tt.runs, err)
			}
		})
	}
}

// A result is not shown to a call from which rules hide something else.
func TestCacheKeyHasWhatIsHidden(t *testing.T) {
	runs := 0
	tool := complete(Cache{Dir: openDir(t), TTL: time.Minute}).Wrap(reader(counter(registry.TextResult("x"), &runs)))
	for i, hidden := range []string{"", "a", "b", "a", ""} {
		c := call("{}")
		c.HidesKey = hidden
		if _, err := tool.Run(t.Context(), c); err != nil || runs != min(i+1, 3) {
			t.Errorf("call %d: %d runs, %v", i, runs, err)
		}
	}
}

func TestCacheDoesNotStoreFailures(t *testing.T) {
	for name, r := range map[string]registry.Result{
		"an error":             registry.ErrorResult(registry.ErrorExecution, "no"),
		"a cut result":         {Content: []registry.Content{registry.TextContent("x")}, Truncated: true},
		"an answered question": {Content: []registry.Content{registry.TextContent("x")}, Asked: true},
		"one too large":        registry.TextResult(strings.Repeat("x", maxCached)),
		"invalid JSON":         {Structured: json.RawMessage("{")},
	} {
		dir, runs := openDir(t), 0
		tool := complete(Cache{Dir: dir, TTL: time.Hour}).Wrap(reader(counter(r, &runs)))
		for range 2 {
			if _, err := tool.Run(t.Context(), call("{}")); err != nil {
				t.Fatal(err)
			}
		}
		if runs != 2 {
			t.Errorf("%s: %d runs", name, runs)
		}
	}
}

func TestDamagedCacheIsIgnored(t *testing.T) {
	dir, runs := openDir(t), 0
	tool := complete(Cache{Dir: dir, TTL: time.Hour}).Wrap(reader(counter(registry.TextResult("x"), &runs)))
	if _, err := tool.Run(t.Context(), call("{}")); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir.Path, "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for _, damage := range []string{"", "{", `{"Format":99}`, "[]"} {
		if err := os.WriteFile(files[0], []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		runs = 0
		if r, err := tool.Run(t.Context(), call("{}")); err != nil || runs != 1 || r.Text() != "x" {
			t.Errorf("%q: %d runs, %v", damage, runs, err)
		}
	}
}

func TestUnwritableCache(t *testing.T) {
	dir, runs := openDir(t), 0
	if err := os.WriteFile(dir.Path, nil, 0o600); err != nil { // a file where the folder should be
		t.Fatal(err)
	}
	var failed error
	tool := complete(Cache{Dir: dir, TTL: time.Hour, Failed: func(err error) { failed = err }}).Wrap(reader(counter(registry.TextResult("x"), &runs)))
	if r, err := tool.Run(t.Context(), call("{}")); err != nil || r.Text() != "x" || failed == nil {
		t.Errorf("%v, %v, reported %v", r, err, failed)
	}
}

// Results are those of one token and one set of credentials; if these are not known,
// nothing is cached.
func TestCacheKnowsWhoAsks(t *testing.T) {
	credentials, failure, reported := "alice's", error(nil), error(nil)
	runs := 0
	cache := Cache{Dir: openDir(t), TTL: time.Hour, Now: time.Now, Key: func(context.Context) ([]byte, error) { return []byte("k"), nil },
		Credentials: func(context.Context, *registry.Tool) (string, error) { return credentials, failure }, Failed: func(err error) { reported = err }}
	tool := cache.Wrap(reader(counter(registry.TextResult("x"), &runs)))
	ask := func(ctx context.Context, want int, what string) {
		t.Helper()
		if _, err := tool.Run(ctx, call("{}")); err != nil || runs != want {
			t.Errorf("%s: %d runs, want %d; %v", what, runs, want, err)
		}
	}
	bob := caller.With(t.Context(), &caller.Caller{Name: "bob", Token: "bob"})
	ask(t.Context(), 1, "the first call")
	ask(bob, 2, "another token")
	ask(bob, 2, "another token again")
	credentials = "bob's"
	ask(t.Context(), 3, "other credentials")
	credentials = "alice's"
	ask(t.Context(), 3, "the first credentials")
	failure = errors.New("unknown")
	ask(t.Context(), 4, "unknown credentials")
	ask(t.Context(), 5, "unknown credentials again")
	if reported != failure {
		t.Errorf("reported %v", reported)
	}
}
