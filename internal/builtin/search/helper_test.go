package search

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place creates a workspace with files and returns its path too.
func place(t testing.TB, files map[string]string) (workspace.Options, string) {
	t.Helper()
	dir := tooltest.Place(t, files)
	return workspace.Options{Dir: dir, Home: t.TempDir(), ConfigHome: t.TempDir()}, dir
}

// find returns a tool made with the options.
func find(t testing.TB, opts workspace.Options, name string) registry.Tool {
	t.Helper()
	w := tooltest.Open(t, workspace.New(opts))
	return tooltest.Find(t, name, NewGlob(w), NewGrep(w), NewListDirectory(w))
}

// run makes a call that must succeed.
func run(t testing.TB, opts workspace.Options, name, params string) registry.Result {
	t.Helper()
	return tooltest.Run(t, find(t, opts, name), params)
}

// output returns the text that the model gets from a call.
func output(t testing.TB, opts workspace.Options, name, params string) string {
	t.Helper()
	r := run(t, opts, name, params)
	return r.Text()
}

func isArgs(err error, pointer string) bool {
	args, ok := err.(*registry.ArgsError)
	return ok && args.Violations[0].Pointer == pointer
}

func TestParamsMatchSchema(t *testing.T) {
	w := tooltest.Open(t, workspace.New(workspace.Options{}))
	tooltest.SameParams[globParams](t, NewGlob(w))
	tooltest.SameParams[grepParams](t, NewGrep(w))
	tooltest.SameParams[listParams](t, NewListDirectory(w))
}
