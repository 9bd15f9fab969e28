package builtin

import (
	"io"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/builtin/shell"
	"github.com/toolreg/toolreg/internal/builtin/todo"
	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place creates a workspace with files and returns its path too.
func place(t testing.TB, files map[string]string) (Options, string) {
	t.Helper()
	dir := tooltest.Place(t, files)
	state := t.TempDir()
	return Options{Workspace: workspace.Options{Dir: dir, Home: t.TempDir(), ConfigHome: t.TempDir()},
		Shell: shell.Options{StateDir: state}, Todo: todo.Options{StateDir: state}}, dir
}

// find returns a tool made with the options.
func find(t testing.TB, opts Options, name string) registry.Tool {
	t.Helper()
	source := Source(opts)
	t.Cleanup(func() { source.(io.Closer).Close() })
	all, _, err := source.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tooltest.Find(t, name, all...)
}

// run makes a call that must succeed.
func run(t testing.TB, opts Options, name, params string) registry.Result {
	t.Helper()
	return tooltest.Run(t, find(t, opts, name), params)
}

// globPaths returns the paths that glob finds, sorted and relative to the
// workspace.
func globPaths(t testing.TB, opts Options, params string) []string {
	t.Helper()
	var out []string
	for _, l := range run(t, opts, "glob", params).Locations {
		rel, err := filepath.Rel(opts.Workspace.Dir, l.Path)
		if err != nil || !filepath.IsAbs(l.Path) {
			t.Errorf("%q is not an absolute path: %v", l.Path, err)
		}
		out = append(out, filepath.ToSlash(rel))
	}
	slices.Sort(out)
	return out
}
