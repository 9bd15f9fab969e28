package file

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place makes a workspace with files, and returns its path too.
func place(t testing.TB, files map[string]string) (workspace.Options, string) {
	t.Helper()
	dir := tooltest.Place(t, files)
	return workspace.Options{Dir: dir, Home: t.TempDir(), ConfigHome: t.TempDir()}, dir
}

// find returns a tool made with the options.
func find(t testing.TB, opts workspace.Options, name string) registry.Tool {
	t.Helper()
	w := tooltest.Open(t, workspace.New(opts))
	return tooltest.Find(t, name, NewReadFile(w), NewWriteFile(w), NewEdit(w), NewApplyPatch(w))
}

// run makes a call that must be possible.
func run(t testing.TB, opts workspace.Options, name, params string) registry.Result {
	t.Helper()
	return tooltest.Run(t, find(t, opts, name), params)
}

func TestParamsAreThoseOfTheSchema(t *testing.T) {
	w := tooltest.Open(t, workspace.New(workspace.Options{}))
	tooltest.SameParams[readParams](t, NewReadFile(w))
	tooltest.SameParams[writeFileParams](t, NewWriteFile(w))
	tooltest.SameParams[editParams](t, NewEdit(w))
	tooltest.SameParams[patchParams](t, NewApplyPatch(w))
}
