package listing

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/state"
)

// run is one run of the program in a project with a server, whose script is in the project.
type run struct {
	Options
	server settings.Server
}

func newRun(t *testing.T) *run {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "server.py"), "")
	environ := []string{"HOME=" + dir, "LOCALAPPDATA=" + dir, "PATH=" + os.Getenv("PATH")}
	return &run{
		Options: Options{Environ: environ, Folders: &state.Folders{Environ: environ}, Version: "1",
			Settings: &settings.Settings{ProjectRoot: dir, Workspace: dir, DiscoveryTTL: time.Hour, FailuresTTL: time.Hour},
			Expander: values.NewExpander(dir, environ), Log: slog.New(slog.DiscardHandler),
			Warn: func(d registry.Diagnostic) { t.Error(d) }},
		server: settings.Server{Name: "s", Command: self, Args: []string{"server.py", "--port", "1"}},
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

// The tools that a server listed are used by later runs, as long as nothing has changed that may change
// the list.
func TestListingIsOfOneServer(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*run)
		kept   bool
	}{
		"nothing":     {func(*run) {}, true},
		"its place":   {func(r *run) { r.server.Origin.Line = 7 }, true},
		"an argument": {func(r *run) { r.server.Args[2] = "2" }, false},
		"a variable":  {func(r *run) { r.server.Env = []settings.Pair{{Name: "A", Value: "1"}} }, false},
		"its script":  {func(r *run) { write(t, filepath.Join(r.Settings.ProjectRoot, "server.py"), "changed") }, false},
		"its program": {func(r *run) {
			r.server.Command = filepath.Join(r.Settings.ProjectRoot, "other.exe")
			write(t, r.server.Command, "")
		}, false},
		"toolreg":              {func(r *run) { r.Version = "2" }, false},
		"the workspace":        {func(r *run) { r.Settings.Workspace = "/elsewhere" }, false},
		"a limit":              {func(r *run) { r.Settings.Limits.Tools = 1 }, false},
		"the cache is off":     {func(r *run) { r.Settings.DiscoveryTTL = 0 }, false},
		"a live list is asked": {func(r *run) { r.Mode = cache.Live }, false},
		"counts are asked":     {func(r *run) { r.Counts = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t)
			first := New(r.Options)
			first.OfServer(r.server).Save(t.Context(), mcpclient.Known{
				Listing: &mcpclient.Listing{Tools: [][]byte{[]byte(`{"name":"x"}`)}}})
			first.Flush()
			tt.change(r)
			known, err := New(r.Options).OfServer(r.server).Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if kept := known.Listing != nil && len(known.Listing.Tools) == 1; kept != tt.kept {
				t.Errorf("the list is used: %t, want %t", kept, tt.kept)
			}
		})
	}
}

// A run that may ask nobody fails for a server that has not listed its tools, rather than show none. Other
// runs ask it, and its start says what is wrong.
func TestNothingIsKept(t *testing.T) {
	for _, mode := range []cache.Mode{cache.Fresh, cache.Offline} {
		for _, missing := range []bool{false, true} {
			r := newRun(t)
			if r.Mode = mode; missing {
				r.server.Command = "no-such-program"
			}
			known, err := New(r.Options).OfServer(r.server).Load(t.Context())
			if known.Listing != nil || errors.Is(err, cache.ErrNothingKept) != (mode == cache.Offline) {
				t.Errorf("mode %d, no program %t: %v, %v", mode, missing, known.Listing, err)
			}
		}
	}
}

// A server that failed is not started again by the next runs, unless it is named or only a login is
// missing, and a success ends that.
func TestFailuresAreKept(t *testing.T) {
	failed := errors.New("no route to host")
	for name, tt := range map[string]struct {
		failure error
		next    func(*run) *Store // of the next run
		kept    bool
	}{
		"the next run":    {failed, func(r *run) *Store { return New(r.Options) }, true},
		"a missing login": {registry.ErrNeedsLogin, func(r *run) *Store { return New(r.Options) }, false},
		"it is named": {failed, func(r *run) *Store {
			s := New(r.Options)
			s.ForgetFailure(registry.MCPPrefix + "s")
			return s
		}, false},
		"it has more time": {failed, func(r *run) *Store {
			r.server.ConnectTimeout = time.Minute
			return New(r.Options)
		}, false},
		"it has listed its tools since": {failed, func(r *run) *Store {
			s := New(r.Options)
			s.OfServer(r.server).Save(t.Context(), mcpclient.Known{Listing: &mcpclient.Listing{}})
			s.Flush()
			return New(r.Options)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t)
			first := New(r.Options)
			first.OfServer(r.server).Save(t.Context(), mcpclient.Known{Failure: tt.failure})
			first.Flush()
			next := tt.next(r)
			known, err := next.OfServer(r.server).Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if kept := known.Failure != nil; kept != tt.kept {
				t.Errorf("the failure is kept: %t, want %t", kept, tt.kept)
			}
			if tt.kept && (known.Failure.Error() != failed.Error() || !errors.Is(known.Failure, registry.ErrSourceFailed)) {
				t.Errorf("it is %v", known.Failure)
			}
		})
	}
}

// What a program declared is used again if the program, its input and the files of its plugin are the same.
func TestOutputOfAProgram(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(i *discover.Invocation, tree string)
		kept   bool
	}{
		"nothing":              {func(*discover.Invocation, string) {}, true},
		"its input":            {func(i *discover.Invocation, _ string) { i.Stdin = []byte("{}") }, false},
		"an argument":          {func(i *discover.Invocation, _ string) { i.Argv[1] = "-b" }, false},
		"a file of its plugin": {func(_ *discover.Invocation, tree string) { write(t, filepath.Join(tree, "lib.py"), "b") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t)
			tree := t.TempDir()
			write(t, filepath.Join(tree, "lib.py"), "a")
			i := discover.Invocation{Argv: []string{r.server.Command, "-a"}, Dir: tree, Env: r.Environ}
			first := New(r.Options)
			first.OfOutput("plugin:p", tree).Save(t.Context(), i, []byte("tools"), nil)
			first.Flush()
			tt.change(&i, tree)
			out, ok, err := New(r.Options).OfOutput("plugin:p", tree).Load(t.Context(), i)
			if err != nil || ok != tt.kept || ok && string(out) != "tools" {
				t.Errorf("%q, %t, %v", out, ok, err)
			}
		})
	}
}
