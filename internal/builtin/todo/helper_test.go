package todo

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setup is a workspace and the options of the tools.
type setup struct {
	Workspace string
	Options
}

// place creates a workspace with files and returns its path too.
func place(t testing.TB, files map[string]string) (setup, string) {
	t.Helper()
	dir := tooltest.Place(t, files)
	return setup{dir, Options{StateDir: t.TempDir()}}, dir
}

// find returns a tool made with the options.
func find(t testing.TB, opts setup, name string) registry.Tool {
	t.Helper()
	w := tooltest.Open(t, workspace.New(workspace.Options{Dir: opts.Workspace}))
	read, write := New(opts.Options, w)
	return tooltest.Find(t, name, read, write)
}

// run makes a call that must succeed.
func run(t testing.TB, opts setup, name, params string) registry.Result {
	t.Helper()
	return tooltest.Run(t, find(t, opts, name), params)
}

func TestParamsMatchSchema(t *testing.T) {
	read, write := New(Options{}, nil)
	tooltest.SameParams[readParams](t, read)
	tooltest.SameParams[writeParams](t, write)
}
