package shell

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
)

const keepArgument = "keep-for-tests"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == keepArgument {
		if err := Keep(context.Background(), os.Args[2:]); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// setup is a workspace and the options of the tools.
type setup struct {
	Workspace string
	Options
}

// place creates a workspace with files and returns its path too.
func place(t testing.TB, files map[string]string) (setup, string) {
	t.Helper()
	dir := tooltest.Place(t, files)
	return setup{dir, Options{StateDir: t.TempDir(), Keeper: testKeeper()}}, dir
}

// testKeeper returns the argv that runs the test binary as the keeper of
// background commands.
func testKeeper() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, keepArgument}
}

// find returns a tool made with the options.
func find(t testing.TB, opts setup, name string) registry.Tool {
	t.Helper()
	w := tooltest.Open(t, workspace.New(workspace.Options{Dir: opts.Workspace}))
	return tooltest.Find(t, name, NewRunShellCommand(opts.Options, w), NewProcess(opts.Options, w))
}

// run makes a call that must succeed.
func run(t testing.TB, opts setup, name, params string) registry.Result {
	t.Helper()
	return tooltest.Run(t, find(t, opts, name), params)
}

func TestParamsMatchSchema(t *testing.T) {
	tooltest.SameParams[shellParams](t, NewRunShellCommand(Options{}, nil))
	tooltest.SameParams[processParams](t, NewProcess(Options{}, nil))
}
