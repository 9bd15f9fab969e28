// Package tooltest has helpers for the tests of the built-in tools: workspaces
// with files, and calls.
package tooltest

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolreg/toolreg/internal/registry"
)

// Place creates a folder with files and returns its path.
func Place(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		Put(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	return dir
}

// Put writes a file and creates its parent folders.
func Put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TextIn returns the content of a file.
func TextIn(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Aged sets the modification time of a file into the past.
func Aged(t testing.TB, path string, ago time.Duration) {
	t.Helper()
	at := time.Now().Add(-ago)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// Link creates a symbolic link at path.
func Link(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// Open returns c, such as a workspace, and closes it when the test ends.
func Open[C io.Closer](t testing.TB, c C) C {
	t.Cleanup(func() { c.Close() })
	return c
}

// Find returns the tool with that name.
func Find(t testing.TB, name string, tools ...registry.Tool) registry.Tool {
	t.Helper()
	for _, tool := range tools {
		if tool.Name == name {
			return tool
		}
	}
	t.Fatalf("no tool %q", name)
	return registry.Tool{}
}

// Call returns a call whose live output is discarded and that may lead to any other.
func Call(params string) registry.Call {
	return registry.Call{
		Params:   json.RawMessage(params),
		Emit:     func(registry.Content) {},
		Progress: func(registry.Progress) {},
		Admit:    func(context.Context, json.RawMessage, bool) error { return nil },
	}
}

// Run makes a call, which must not return an error.
func Run(t testing.TB, tool registry.Tool, params string) registry.Result {
	t.Helper()
	r, err := tool.Run(t.Context(), Call(params))
	if err != nil {
		t.Fatalf("%s %s: %v", tool.Name, params, err)
	}
	return r
}

// JSON returns v as JSON.
func JSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Quoted returns s as a JSON string.
func Quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Sorted sorts s and removes duplicates.
func Sorted(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

// SameParams reports an error if the properties in a tool's schema differ from
// the JSON names of P, the struct that its params are decoded into.
func SameParams[P any](t *testing.T, of registry.Tool) {
	t.Helper()
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(of.InputSchema, &schema); err != nil {
		t.Fatal(err)
	}
	names, tags := slices.Sorted(maps.Keys(schema.Properties)), []string{}
	for field := range reflect.TypeFor[P]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		tags = append(tags, name)
	}
	slices.Sort(tags)
	if diff := cmp.Diff(tags, names, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: params and schema differ (-params +schema)\n%s", of.Name, diff)
	}
}

// Linked creates a folder full of links, and a sibling folder whose name has
// the same prefix.
func Linked(t testing.TB) (dir, outside string) {
	dir = Place(t, map[string]string{"a.txt": "inside", "deep/er/b.txt": "inside"})
	outside = dir + "-evil"
	Put(t, filepath.Join(outside, "secret"), "outside")
	t.Cleanup(func() { os.RemoveAll(outside) })
	Link(t, "a.txt", filepath.Join(dir, "to-file"))
	Link(t, filepath.Join(dir, "deep"), filepath.Join(dir, "abs-inside"))
	Link(t, "deep/er", filepath.Join(dir, "to-folder"))
	Link(t, "to-folder", filepath.Join(dir, "to-link"))
	Link(t, "../../a.txt", filepath.Join(dir, "deep/er/up"))
	Link(t, "../"+filepath.Base(outside), filepath.Join(dir, "rel-out"))
	Link(t, outside, filepath.Join(dir, "abs-out"))
	Link(t, "/proc/self/root", filepath.Join(dir, "proc"))
	Link(t, "loop-b", filepath.Join(dir, "loop-a"))
	Link(t, "loop-a", filepath.Join(dir, "loop-b"))
	Link(t, "nowhere", filepath.Join(dir, "dangling"))
	Link(t, "../../..", filepath.Join(dir, "deep/er/far"))
	return dir, outside
}
