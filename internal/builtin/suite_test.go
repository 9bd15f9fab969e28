package builtin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

// place makes a workspace with files: names ending in a slash are folders.
func place(t testing.TB, files map[string]string) (Options, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		put(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	return Options{Workspace: dir, StateDir: t.TempDir(), Home: t.TempDir(), ConfigHome: t.TempDir(), Keeper: testKeeper()}, dir
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// find returns a tool made with the options.
func find(t testing.TB, opts Options, name string) registry.Tool {
	t.Helper()
	w := newWorkspace(&opts)
	t.Cleanup(func() { w.close() })
	for _, tool := range tools(&opts, w) {
		if tool.Name == name {
			return tool
		}
	}
	t.Fatalf("no tool %q", name)
	return registry.Tool{}
}

func call(params string) registry.Call {
	return registry.Call{
		Params:   json.RawMessage(params),
		Emit:     func(registry.Content) {},
		Progress: func(registry.Progress) {},
	}
}

// run makes a call that must be possible.
func run(t testing.TB, opts Options, name, params string) registry.Result {
	t.Helper()
	r, err := find(t, opts, name).Run(t.Context(), call(params))
	if err != nil {
		t.Fatalf("%s %s: %v", name, params, err)
	}
	return r
}

// quoted returns s as a JSON string.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func sorted(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

// output is the text that a call gives to the model.
func output(t testing.TB, opts Options, name, params string) string {
	t.Helper()
	r := run(t, opts, name, params)
	return r.Text()
}

const keepArgument = "keep-for-tests"

// testKeeper makes the test binary a keeper of commands in the background.
func testKeeper() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, keepArgument}
}
