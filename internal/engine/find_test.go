package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/mcptest"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// world is a project with real MCP servers over HTTP, a plugin and the settings
// that name them. It knows which servers a session has started.
type world struct {
	t       testing.TB
	dir     string
	yaml    string
	servers map[string]*server

	mu      sync.Mutex
	started map[string]bool
	warned  []string
}

type server struct {
	handler http.Handler
	names   string
}

// newWorld starts a server for each name with the tools that follow it, such as
// "a": "x,y"; the tools "down" make one that answers with status 500, "silent" one
// that never answers.
func newWorld(t testing.TB, yaml string, servers ...string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), servers: map[string]*server{}, started: map[string]bool{}}
	var b strings.Builder
	b.WriteString("mcpServers:\n")
	for _, s := range servers {
		name, tools, _ := strings.Cut(s, ":")
		w.serve(name, tools)
		address := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.handle(name, rw, r) }))
		t.Cleanup(address.Close)
		fmt.Fprintf(&b, "  %s: {httpUrl: %q}\n", name, address.URL)
	}
	if len(servers) > 0 {
		yaml += b.String()
	}
	w.yaml = filepath.Join(w.dir, "s.yaml")
	w.write("s.yaml", yaml)
	return w
}

func (w *world) write(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

// serve replaces the tools of a server.
func (w *world) serve(name, tools string) {
	w.t.Helper()
	h, err := mcptest.Handler("--names", tools)
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[name] = &server{h, tools}
}

func (w *world) handle(name string, rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.started[name] = true
	s := w.servers[name]
	w.mu.Unlock()
	switch s.names {
	case "down":
		http.Error(rw, "out of order", http.StatusInternalServerError)
		return
	case "silent":
		_, _ = io.Copy(io.Discard, r.Body) // otherwise a canceled request is not noticed
		<-r.Context().Done()
		return
	}
	s.handler.ServeHTTP(rw, r)
}

// starts returns the servers that received requests since it was last called.
func (w *world) starts() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := strings.Join(slices.Sorted(maps.Keys(w.started)), " ")
	clear(w.started)
	return out
}

func (w *world) environ() []string {
	return []string{"HOME=" + filepath.Join(w.dir, "home"), "PATH=" + os.Getenv("PATH")}
}

func (w *world) session(o Options) *Session { return w.sessionIn(o, w.environ()...) }

func (w *world) sessionIn(o Options, environ ...string) *Session {
	w.t.Helper()
	environ = append(environ, "PATH="+os.Getenv("PATH"))
	set, _, err := settings.Load(settings.Options{Dir: w.dir, Files: []string{w.yaml}, NoUser: true, NoProject: true, Environ: environ, SystemDir: w.dir})
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := New(w.t.Context(), set, Deps{Version: "test", Dir: w.dir, Environ: environ, Folders: &state.Folders{Environ: environ}, Warn: w.warn,
		Outcome: func(context.Context, error) (string, int) { return "failure", 1 }}, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(s.Close)
	return s
}

func (w *world) warn(d registry.Diagnostic) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warned = append(w.warned, d.Message)
}

const marking = "#!/bin/sh\ntouch ran\nprintf '{\"name\":\"%s\",\"description\":\"d\"}' greet\n"

// withPlugin adds a plugin with the tool greet, whose factory creates a file named ran.
func withPlugin(t *testing.T, w *world) {
	w.write("plugins/p/plugin.yaml", "id: p\nfactory: [./make.sh]\ncall: [./make.sh]\n")
	w.write("plugins/p/make.sh", marking)
}

// TestFindStartsOnlyNecessarySources covers every branch of the lookup and checks which
// servers it started.
func TestFindStartsOnlyNecessarySources(t *testing.T) {
	for _, tt := range []struct {
		name    string
		servers []string
		find    string
		query   Query
		tool    string // found, by its registered name and source
		starts  string
		plugin  bool // the plugin ran
	}{
		{"a built-in tool runs no plugin and no server", []string{"a:x", "b:y"}, "read_file", Query{}, "read_file builtin", "", false},
		{"an alias of a built-in tool runs neither", []string{"a:x"}, "read", Query{}, "read_file builtin", "", false},
		{"a plugin's tool starts no server", []string{"a:x"}, "greet", Query{}, "greet plugin:p", "", true},
		{"server__tool starts that server", []string{"a:x", "b:y"}, "b__y", Query{}, "b__y mcp:b", "b", true},
		{"server__tool of the only server", []string{"a:x"}, "a__x", Query{}, "x mcp:a", "a", true},
		{"the longest matching server name wins", []string{"a:x", "a__b:c"}, "a__b__c", Query{}, "a__b__c mcp:a__b", "a__b", true},
		{"the order of servers does not matter", []string{"a__b:c", "a:x"}, "a__b__c", Query{}, "a__b__c mcp:a__b", "a__b", true},
		{"a plain name starts all servers", []string{"a:x", "b:y"}, "y", Query{}, "y mcp:b", "a b", true},
		{"the first server with the name wins", []string{"a:x", "b:x"}, "x", Query{}, "x mcp:a", "a*", true}, // and b is not waited for
		{"Whole loads all servers for a server's tool", []string{"a:x", "b:y"}, "b__y", Query{Whole: true}, "y mcp:b", "a b", true},
		{"Whole starts no server for a local tool", []string{"a:x"}, "greet", Query{Whole: true}, "greet plugin:p", "", true},
		{"a declared name loads all servers", []string{"a:x.y", "b:z"}, "x_y", Query{Format: "openai"}, "x.y mcp:a", "a b", true},
		{"without a format, declared names of all formats match", []string{"a:x.y", "b:z"}, "x_y", Query{}, "x.y mcp:a", "a b", true},
		{"an alias may be a declared name", []string{"a:x"}, "read", Query{Format: "openai"}, "read_file builtin", "a", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "plugins: {paths: [plugins]}\n", tt.servers...)
			withPlugin(t, w)
			s := w.session(Options{})
			if got := w.starts(); got != "" {
				t.Errorf("making the session started %q", got)
			}
			f, err := s.Tools.Find(t.Context(), tt.find, tt.query)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Tool.Name + " " + f.Tool.Source; got != tt.tool {
				t.Errorf("found %q, want %q", got, tt.tool)
			}
			got := w.starts()
			if first, more := strings.CutSuffix(tt.starts, "*"); got != tt.starts && !(more && strings.HasPrefix(got, first)) {
				t.Errorf("started %q, want %q", got, tt.starts)
			}
			if _, err := os.Stat(filepath.Join(w.dir, "plugins/p/ran")); (err == nil) != tt.plugin {
				t.Errorf("the plugin ran: %t, want %t", err == nil, tt.plugin)
			}
			again, err := s.Tools.Find(t.Context(), tt.find, tt.query)
			if err != nil || again.Registry != f.Registry {
				t.Errorf("the second time: %v, or the sources were loaded again", err)
			}
		})
	}
}

func TestFindMissingTool(t *testing.T) {
	for _, tt := range []struct {
		name    string
		yaml    string
		servers []string
		find    string
		source  bool   // the error is that of a source
		missing bool   // no tool has the name
		text    string // in the message
		starts  string
	}{
		{"no such tool", "", []string{"a:greeting", "b:y"}, "greetin", false, true, `did you mean greeting`, "a b"},
		{"a source that may have it failed", "", []string{"a:down", "b:y"}, "z", true, true, `no tool named "z"`, "a b"},
		{"the named server failed", "", []string{"a:down", "b:y"}, "a__x", true, false, `500`, "a"},
		{"the only server failed", "", []string{"a:down"}, "a__x", true, false, `500`, "a"},
		{"the named server does not have it", "", []string{"a:x", "b:down"}, "a__y", false, true, `no tool named "a__y"`, "a b"},
		{"a setting hides it and another source failed", "excludeTools: [x]\n", []string{"a:x", "b:down"}, "x", false, true, `is not registered`, "a b"},
		{"a setting hides it", "excludeTools: [y]\n", []string{"a:x", "b:y"}, "y", false, true, `is not registered`, "a b"},
		{"a setting hides it under its other name", "excludeTools: [y]\n", []string{"a:x", "b:y"}, "b__y", false, true, `is not registered`, "a b"},
		{"the alias of a built-in tool that was overwritten", "toolDiscoveryCommand: [echo, '[{\"name\":\"read_file\"}]']\ntoolCallCommand: cat\n", []string{"a:x"}, "read", false, true, `no tool named "read"`, "a"},
		{"the version does not exist and another source failed", "toolDiscoveryCommand: [echo, '[{\"name\":\"made\",\"version\":\"2.0.0\"}]']\ntoolCallCommand: cat\n", []string{"a:down"}, "made@9", false, true, `2.0.0`, "a"},
		{"one version is hidden and another exists", "excludeTools: [made@1.0.0]\ntoolDiscoveryCommand: [echo, '[{\"name\":\"made\",\"version\":\"1.0.0\"},{\"name\":\"made\",\"version\":\"2.0.0\"}]']\ntoolCallCommand: cat\n",
			[]string{"a:x"}, "made@9", false, true, `available: 2.0.0`, "a"},
		{"the only version is hidden", "excludeTools: [made@1.0.0]\ntoolDiscoveryCommand: [echo, '[{\"name\":\"made\",\"version\":\"1.0.0\"}]']\ntoolCallCommand: cat\n",
			[]string{"a:x"}, "made@9", false, true, `is not registered`, "a"},
		{"its server is not allowed", "mcp: {excluded: [b]}\n", []string{"a:x", "b:y"}, "b__y", false, true, `its server is not allowed`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.yaml, tt.servers...)
			f, err := w.session(Options{}).Tools.Find(t.Context(), tt.find, Query{})
			if err == nil {
				t.Fatalf("found %s", f.Tool.Name)
			}
			_, missing := errors.AsType[*registry.NotFoundError](err)
			if failed := errors.Is(err, registry.ErrSourceFailed); failed != tt.source || missing != tt.missing || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%v (a source failed: %t, no such tool: %t)", err, failed, missing)
			}
			if f.Registry == nil {
				t.Error("no registry, whose diagnostics would be lost")
			}
			if got := w.starts(); got != tt.starts {
				t.Errorf("started %q, want %q", got, tt.starts)
			}
		})
	}
}

// Once all sources are loaded, every name is looked up in that registry.
func TestFindReusesWholeRegistry(t *testing.T) {
	w := newWorld(t, "", "a:x", "b:y")
	s := w.session(Options{})
	if _, err := s.Tools.All(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.starts(); got != "a b" {
		t.Errorf("started %q", got)
	}
	for name, want := range map[string]string{"b__y": "y", "x": "x", "read_file": "read_file"} {
		f, err := s.Tools.Find(t.Context(), name, Query{})
		if err != nil || f.Tool.Name != want || w.starts() != "" {
			t.Errorf("%s: %v, %v, or a server was asked again", name, f.Tool, err)
		}
	}
}

// A call uses the current definition of a server's tool even if one is cached. A name
// that is not in the cache is looked up in current listings.
func TestFindRefreshesCachedListings(t *testing.T) {
	w := newWorld(t, "cache: {discovery: 1h}\n", "a:x,old", "b:y")
	keep := func() {
		s := w.session(Options{Cache: cache.Renew})
		if _, err := s.Tools.All(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Close()
		w.starts()
	}
	keep()
	for _, tt := range []struct {
		name   string
		find   string
		query  Query
		mode   cache.Mode
		now    string // the tools that server a has now
		want   string // name and source, or the error
		starts string
	}{
		{"a lookup queries no server", "b__y", Query{}, cache.Fresh, "x,old", "b__y mcp:b", ""},
		{"a call queries its server", "b__y", Query{Call: true}, cache.Fresh, "x,old", "b__y mcp:b", "b"},
		{"a call by plain name queries its server", "y", Query{Call: true}, cache.Fresh, "x,old", "y mcp:b", "b"},
		{"a call of a built-in tool queries no server", "read_file", Query{Call: true}, cache.Fresh, "x,old", "read_file builtin", ""},
		{"a new tool is found", "new", Query{}, cache.Fresh, "x,new", "new mcp:a", "a b"},
		{"a removed tool is not found", "old", Query{Call: true}, cache.Fresh, "x,new", `tool "old" is not registered: it belongs to server "a", which no longer has it`, "a"},
		{"offline no server is queried", "newest", Query{}, cache.Offline, "x,newest", `no tool named "newest"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.t = t
			w.serve("a", "x,old")
			keep()
			w.serve("a", tt.now)
			s := w.session(Options{Cache: tt.mode})
			f, err := s.Tools.Find(t.Context(), tt.find, tt.query)
			got := fmt.Sprint(err)
			if err == nil {
				got = f.Tool.Name + " " + f.Tool.Source
			}
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if got := w.starts(); got != tt.starts {
				t.Errorf("asked %q, want %q", got, tt.starts)
			}
		})
	}
}

func TestFindAll(t *testing.T) {
	w := newWorld(t, "plugins: {paths: [plugins]}\n", "a:x", "b:y")
	withPlugin(t, w)
	for _, tt := range []struct {
		names  []string
		want   []string // in the order of the registry
		starts string
	}{
		{[]string{"read_file"}, []string{"read_file"}, ""},
		{[]string{"greet", "read_file", "read"}, []string{"read_file", "greet"}, ""},
		{[]string{"b__y", "greet"}, []string{"greet", "y"}, "a b"},
	} {
		_, tools, err := w.session(Options{}).Tools.FindAll(t.Context(), tt.names...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tool := range tools {
			got = append(got, tool.Name)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.names, diff)
		}
		if got := w.starts(); got != tt.starts {
			t.Errorf("%q started %q, want %q", tt.names, got, tt.starts)
		}
	}
}

// A plain name refers to the first source that has it: Find does not wait for later
// sources, and Close stops them.
func TestFindDoesNotWaitForLaterServers(t *testing.T) {
	w := newWorld(t, "", "a:w", "b:x", "c:silent", "d:x")
	s := w.session(Options{})
	for _, name := range []string{"x", "w", "x"} {
		f, err := s.Tools.Find(t.Context(), name, Query{Call: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range f.Registry.Reports() {
			if r.Name == "mcp:c" || r.Name == "mcp:d" {
				t.Errorf("%s waited for %s", name, r.Name)
			}
		}
	}
	s.Close()
}

func TestFindReturnsCauseOfContext(t *testing.T) {
	w := newWorld(t, "", "a:x")
	gone := errors.New("the user disconnected")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := w.session(Options{}).Tools.Find(ctx, "x", Query{}); !errors.Is(err, gone) {
		t.Errorf("%v, want the cause", err)
	}
}

// Steps of composites use the same lookup and the same policy as other calls.
func TestCompositeStepIsSubjectToPolicy(t *testing.T) {
	w := newWorld(t, "composites:\n  both: {description: d, steps: [{tool: b__echo, params: '{text: .params.text}'}]}\nallowedTools: [echo, b__echo]\n", "a:x", "b:echo")
	s := w.session(Options{})
	f, err := s.Tools.Find(t.Context(), "both", Query{Call: true})
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Calls.CallJSON(t.Context(), f, registry.Call{Tool: "both", Params: json.RawMessage(`{"text":"hello"}`)})
	if err != nil || result.IsError {
		t.Fatalf("%v, %s", err, result.Text())
	}
	if got := w.starts(); got != "b" {
		t.Errorf("started %q", got)
	}
	if _, err := s.Calls.CallJSON(t.Context(), f, registry.Call{Tool: "both", Params: json.RawMessage(`{"text":1,"text":2}`)}); err == nil {
		t.Error("a duplicate key was accepted")
	}
}

// A server that failed is not started again for a while, unless it is named explicitly.
func TestNamedServerIsStartedDespiteRecentFailure(t *testing.T) {
	load := func(s *Session) error { _, err := s.Tools.All(t.Context()); return err }
	for _, tt := range []struct {
		name   string
		do     func(*Session) error
		starts string
	}{
		{"not named", load, ""},
		{"named by a pattern", func(s *Session) error {
			on, _, err := s.Servers.Named("a")
			if err == nil {
				_, err = s.Tools.LoadServers(t.Context(), on)
			}
			return err
		}, "a"},
		{"named by a tool's name", func(s *Session) error { _, err := s.Tools.Find(t.Context(), "a__x", Query{}); return err }, "a"},
	} {
		w := newWorld(t, "cache: {discovery: 1h}\n", "a:down", "b:y")
		s := w.session(Options{})
		if err := load(s); err != nil || w.starts() != "a b" {
			t.Fatal(err)
		}
		s.Close() // writes what it keeps
		w.serve("a", "x")
		if err := tt.do(w.session(Options{})); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := w.starts(); got != tt.starts {
			t.Errorf("%s: started %q, want %q", tt.name, got, tt.starts)
		}
	}
}

// Patterns may overlap: each server is returned once, even one that is turned off.
func TestServersByPattern(t *testing.T) {
	w := newWorld(t, "mcp: {excluded: [off]}\n", "one:x", "two:y", "off:z")
	s := w.session(Options{})
	for _, tt := range []struct {
		patterns []string
		want     string // those that are on, then those that are off
	}{
		{nil, "one two | off"},
		{[]string{"one"}, "one |"},
		{[]string{"t*", "two", "*"}, "two one | off"},
		{[]string{"off", "o*"}, "one | off"},
	} {
		on, off, err := s.Servers.Named(tt.patterns...)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, server := range on {
			names = append(names, server.Info().Name)
		}
		names = append(names, "|")
		for _, server := range off {
			names = append(names, server.Name)
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.patterns, got, tt.want)
		}
	}
	_, _, err := s.Servers.Named("one", "ohne")
	if missing, ok := errors.AsType[*sources.NoServerError](err); !ok || missing.Name != "ohne" || !errors.Is(err, registry.ErrNotFound) || !strings.Contains(err.Error(), "did you mean one?") {
		t.Errorf("a pattern of no server: %v", err)
	}
	if got := w.starts(); got != "" {
		t.Errorf("started %q", got)
	}
}

// If a cached tool is hidden, its server is queried again only if toolreg.lock hides the
// tool, because the tool may have changed back.
func TestFindQueriesServerOfLockedTool(t *testing.T) {
	for _, tt := range []struct {
		name, find string
		locked     bool
		reason     string
		starts     string
	}{
		{"a lock hides it", "new", true, "it is not in toolreg.lock", "a"},
		{"a setting hides it", "off", false, "excludeTools", ""},
	} {
		w := newWorld(t, "cache: {discovery: 1h}\nexcludeTools: [off]\n", "a:x,off", "b:y")
		var pinned lock.Recorder
		s := w.session(Options{Last: pinned.Filter, LastShaped: pinned.Override})
		if _, err := s.Tools.All(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := lock.Write(s.Settings.ProjectRoot, pinned.File().Encode()); err != nil {
			t.Fatal(err)
		}
		w.serve("a", "x,off,new")
		s = w.session(Options{Cache: cache.Renew})
		if _, err := s.Tools.All(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Close()
		w.starts()
		_, err := w.session(Options{Locked: tt.locked}).Tools.Find(t.Context(), tt.find, Query{})
		if missing, ok := errors.AsType[*registry.NotFoundError](err); !ok || missing.Hidden == nil || !strings.Contains(missing.Hidden.Reason, tt.reason) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := w.starts(); got != tt.starts {
			t.Errorf("%s: asked %q, want %q", tt.name, got, tt.starts)
		}
	}
}

// TestCanceledLookupIsNotRemembered checks that later lookups load what a canceled one did not.
func TestCanceledLookupIsNotRemembered(t *testing.T) {
	w := newWorld(t, "", "a:x", "b:y")
	s := w.session(Options{})
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"a__x", "y"} {
		if _, err := s.Tools.Find(ctx, name, Query{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Tools.Find(t.Context(), name, Query{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
