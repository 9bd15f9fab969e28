package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// A model may name a file to be written, but neither a folder nor a file of toolreg.
func TestChangeable(t *testing.T) {
	opts, dir := place(t, map[string]string{"sub/a.txt": ""})
	opts.Protected = []string{filepath.Join(dir, "toolreg.lock")}
	w := tooltest.Open(t, NewEditor(opts))
	for name, want := range map[string]struct{ rel, refused string }{
		"a.txt":        {rel: "a.txt"},
		"./sub/b.txt":  {rel: "sub/b.txt"},
		".":            {refused: "is a folder"},
		"new/":         {refused: "is a folder"},
		"../a.txt":     {refused: "outside the workspace"},
		"toolreg.lock": {refused: "belongs to toolreg"},
	} {
		rel, err := w.Changeable("write_file", "/path", name)
		if rel != want.rel || (err == nil) != (want.refused == "") || err != nil && !strings.Contains(err.Error(), want.refused) {
			t.Errorf("%s: %q, %v; want %+v", name, rel, err, want)
		}
		if denied := errors.Is(err, registry.ErrDenied); denied != (name == "toolreg.lock") {
			t.Errorf("%s is denied: %t", name, denied)
		}
	}
}

// A change waits for another one, unless its call is canceled.
func TestLocked(t *testing.T) {
	opts, _ := place(t, nil)
	w := tooltest.Open(t, NewEditor(opts))
	starts, waits := make(chan struct{}), make(chan error, 1)
	result, err := w.Locked(t.Context(), func() registry.Result {
		go func() {
			close(starts)
			_, err := w.Locked(t.Context(), func() registry.Result { return registry.Result{} })
			waits <- err
		}()
		<-starts
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 { // meanwhile the other one tries, too
			if _, err := w.Locked(ctx, func() registry.Result {
				t.Error("two changes at once")
				return registry.Result{}
			}); !errors.Is(err, context.Canceled) {
				t.Errorf("the change that does not wait: %v", err)
			}
		}
		return registry.TextResult("done")
	})
	if err := <-waits; err != nil {
		t.Errorf("the change that waits: %v", err)
	}
	if err != nil || len(result.Content) != 1 || result.Content[0].Text != "done" {
		t.Errorf("%+v, %v", result, err)
	}
	opts.Dir = filepath.Join(opts.Dir, "missing")
	if _, err := tooltest.Open(t, NewEditor(opts)).Locked(t.Context(), func() registry.Result { return registry.Result{} }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a workspace: %v", err)
	}
}

// Folders that a change would create are known beforehand, and removed if it fails.
func TestMissingFolders(t *testing.T) {
	opts, dir := place(t, map[string]string{"sub/a.txt": ""})
	w := tooltest.Open(t, NewEditor(opts))
	missing := w.MissingFolders("sub/new/er/b.txt")
	if !slices.Equal(missing, []string{"sub/new/er", "sub/new"}) {
		t.Errorf("missing: %q", missing)
	}
	tooltest.Put(t, filepath.Join(dir, "sub/new/other"), "")
	if err := os.Mkdir(filepath.Join(dir, "sub/new/er"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.RemoveFolders(missing)
	if entries, err := os.ReadDir(filepath.Join(dir, "sub/new")); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// write resolves the name and writes the file as the tools do.
func write(t testing.TB, opts Options, name, content string) error {
	t.Helper()
	w := tooltest.Open(t, NewEditor(opts))
	rel, err := w.resolve(name, text.Alike)
	if err != nil {
		return err
	}
	return w.WriteFile(rel, []byte(content), 0)
}

func content(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// noTemporaries fails if a folder contains a file that a write left behind.
func noTemporaries(t testing.TB, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tmp") {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWriteFile(t *testing.T) {
	opts, dir := place(t, map[string]string{"old.sh": "old", "twin": "old", "sub/x": "x"})
	outside := t.TempDir()
	tooltest.Put(t, filepath.Join(outside, "f"), "outside")
	if err := os.Link(filepath.Join(outside, "f"), filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "old.sh"), 0o751); err != nil {
		t.Fatal(err)
	}
	tooltest.Link(t, "twin", filepath.Join(dir, "to-twin"))
	tooltest.Link(t, "made/later", filepath.Join(dir, "dangling"))

	for _, name := range []string{"new", "a/b/c/new", "old.sh", "to-twin", "hard", "dangling"} {
		if err := write(t, opts, name, "new"); err != nil {
			t.Errorf("writing %s: %v", name, err)
		} else if got := content(t, filepath.Join(dir, name)); got != "new" {
			t.Errorf("%s holds %q", name, got)
		}
	}
	if info, _ := os.Stat(filepath.Join(dir, "old.sh")); info.Mode().Perm() != 0o751 {
		t.Errorf("the mode became %v", info.Mode())
	}
	if info, _ := os.Lstat(filepath.Join(dir, "to-twin")); info.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link was replaced, not its target")
	}
	if got := content(t, filepath.Join(outside, "f")); got != "outside" {
		t.Errorf("the hard link's other name holds %q", got)
	}
	noTemporaries(t, dir)
}

// A mode that is given replaces that of the file.
func TestWriteFileWithMode(t *testing.T) {
	opts, dir := place(t, map[string]string{"old": "old"})
	w := tooltest.Open(t, NewEditor(opts))
	for _, name := range []string{"old", "new"} {
		if err := w.WriteFile(name, []byte("new"), 0o751); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o751 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	noTemporaries(t, dir)
}

func TestWriteFileRefuses(t *testing.T) {
	opts, dir := place(t, map[string]string{"file": "old", "read-only": "old", "sub/x": "x"})
	if err := os.Chmod(filepath.Join(dir, "read-only"), 0o444); err != nil {
		t.Fatal(err)
	}
	tooltest.MakePipe(t, filepath.Join(dir, "pipe"))
	tooltest.Link(t, t.TempDir(), filepath.Join(dir, "out"))
	for name, want := range map[string]string{
		"sub": "is a directory", ".": "is a directory", "file/below": "not a directory", "file/be/low": "not a directory", "read-only": "read-only",
		"pipe": "pipe", "out/x": "leaves the workspace", "../x": "leads out",
	} {
		if err := write(t, opts, name, "new"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("writing %s: %v, want %q", name, err, want)
		}
	}
	if got := content(t, filepath.Join(dir, "read-only")); got != "old" {
		t.Errorf("the read-only file holds %q", got)
	}
	noTemporaries(t, dir)
}

func TestFailedWriteLeavesNoFolders(t *testing.T) {
	opts, dir := place(t, map[string]string{"sub/x": "x"})
	w := tooltest.Open(t, NewEditor(opts))
	if err := w.WriteFile("sub/made/deep/"+strings.Repeat("x", 300), []byte("new"), 0); err == nil {
		t.Error("wrote a file with a name that is too long")
	}
	if _, err := os.Lstat(filepath.Join(dir, "sub/made")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sub/made: %v", err)
	}
	if got := content(t, filepath.Join(dir, "sub/x")); got != "x" {
		t.Errorf("sub/x holds %q", got)
	}
}

func TestReadersSeeOldOrNew(t *testing.T) {
	opts, dir := place(t, map[string]string{"f": strings.Repeat("a", 1<<16)})
	w := tooltest.Open(t, NewEditor(opts))
	var wg sync.WaitGroup
	for _, letter := range []string{"a", "b"} {
		wg.Go(func() {
			for range 20 {
				if err := w.WriteFile("f", bytes.Repeat([]byte(letter), 1<<16), 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		if got := content(t, filepath.Join(dir, "f")); got != strings.Repeat(got[:1], 1<<16) {
			t.Fatal("the file has parts of both contents")
		}
	}
	wg.Wait()
	noTemporaries(t, dir)
}

func TestProtectedFilesAreNeverChanged(t *testing.T) {
	opts, dir := place(t, map[string]string{".toolreg/settings.yaml": "mine", "state/approvals.json": "mine", "free": "old"})
	tooltest.Link(t, ".toolreg", filepath.Join(dir, "alias"))
	if err := os.Link(filepath.Join(dir, ".toolreg/settings.yaml"), filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	opts.Protected = []string{
		filepath.Join(dir, ".toolreg/settings.yaml"), filepath.Join(dir, ".toolreg/settings.json"), filepath.Join(dir, "state"), "/elsewhere",
	}
	for _, name := range []string{
		".toolreg/settings.yaml", ".toolreg/settings.json", ".TOOLREG/Settings.json", "alias/settings.yaml", "alias/settings.json",
		"hard", "state", "state/new", "state/deep/er", "STATE/new", "./state/../state/approvals.json",
	} {
		if err := write(t, opts, name, "changed"); err == nil || !strings.Contains(err.Error(), "belongs to toolreg") {
			t.Errorf("writing %s: %v", name, err)
		}
	}
	for _, name := range []string{"free", ".toolreg/other", "statement"} {
		if err := write(t, opts, name, "new"); err != nil {
			t.Errorf("writing %s: %v", name, err)
		}
	}
	w := tooltest.Open(t, NewEditor(opts))
	if err := w.RemoveFile("state/approvals.json"); err == nil {
		t.Error("one of toolreg's own files was removed")
	}
	if err := w.RemoveFile("free"); err != nil {
		t.Error(err)
	}
	if err := w.RemoveFile("free"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removing a missing file: %v", err)
	}
	if err := w.RemoveFile("state"); err == nil {
		t.Error("a folder was removed")
	}
}

func TestWorkspaceBelowAProtectedFolder(t *testing.T) {
	opts, dir := place(t, nil)
	opts.Protected = []string{filepath.Dir(dir)}
	if err := write(t, opts, "x", "new"); err == nil {
		t.Error("a file below toolreg's own folder was written")
	}
}
