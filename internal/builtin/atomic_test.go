package builtin

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// write resolves the name and writes as the writing tools do.
func write(t testing.TB, opts Options, name, text string) error {
	t.Helper()
	w := newWorkspace(&opts)
	t.Cleanup(func() { w.close() })
	rel, err := w.resolve(name)
	if err != nil {
		return err
	}
	return w.writeFile(rel, []byte(text))
}

func content(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// noTemporaries fails when a folder holds a file left behind by a write.
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
	put(t, filepath.Join(outside, "f"), "outside")
	if err := os.Link(filepath.Join(outside, "f"), filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "old.sh"), 0o751); err != nil {
		t.Fatal(err)
	}
	link(t, "twin", filepath.Join(dir, "to-twin"))
	link(t, "made/later", filepath.Join(dir, "dangling"))

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

func TestWriteFileRefuses(t *testing.T) {
	opts, dir := place(t, map[string]string{"file": "old", "read-only": "old", "sub/x": "x"})
	if err := os.Chmod(filepath.Join(dir, "read-only"), 0o444); err != nil {
		t.Fatal(err)
	}
	makePipe(t, filepath.Join(dir, "pipe"))
	link(t, t.TempDir(), filepath.Join(dir, "out"))
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

func TestReadersSeeOldOrNew(t *testing.T) {
	opts, dir := place(t, map[string]string{"f": strings.Repeat("a", 1<<16)})
	w := newWorkspace(&opts)
	t.Cleanup(func() { w.close() })
	var wg sync.WaitGroup
	for _, letter := range []string{"a", "b"} {
		wg.Go(func() {
			for range 20 {
				if err := w.writeFile("f", bytes.Repeat([]byte(letter), 1<<16)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		if got := content(t, filepath.Join(dir, "f")); got != strings.Repeat(got[:1], 1<<16) {
			t.Fatal("half of one content and half of another")
		}
	}
	wg.Wait()
	noTemporaries(t, dir)
}

func TestProtectedFilesAreNeverChanged(t *testing.T) {
	opts, dir := place(t, map[string]string{".toolreg/settings.yaml": "mine", "state/approvals.json": "mine", "free": "old"})
	link(t, ".toolreg", filepath.Join(dir, "alias"))
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
	w := newWorkspace(&opts)
	t.Cleanup(func() { w.close() })
	if err := w.removeFile("state/approvals.json"); err == nil {
		t.Error("a file of toolreg's own was removed")
	}
	if err := w.removeFile("free"); err != nil {
		t.Error(err)
	}
	if err := w.removeFile("free"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removing a missing file: %v", err)
	}
	if err := w.removeFile("state"); err == nil {
		t.Error("a folder was removed")
	}
}

func TestWorkspaceBelowAProtectedFolder(t *testing.T) {
	opts, dir := place(t, nil)
	opts.Protected = []string{filepath.Dir(dir)}
	if err := write(t, opts, "x", "new"); err == nil {
		t.Error("written below toolreg's own folder")
	}
}

// What a killed run left behind goes with the next change in the folder; what
// may be another run's, or is a person's own, stays.
func TestWritesSweep(t *testing.T) {
	stale, fresh, mine := ".toolreg-"+strings.Repeat("AZ27", 7)[:26]+".tmp", ".toolreg-"+strings.Repeat("B", 26)+".tmp", ".toolreg-notes.tmp"
	for tool, p := range map[string]string{
		"write_file":  `{"file_path":"sub/a","content":"x"}`,
		"edit":        `{"file_path":"sub/f","old_string":"old","new_string":"new"}`,
		"apply_patch": `{"patch":"--- a/sub/f\n+++ b/sub/f\n@@ -1 +1 @@\n-old\n+new\n"}`,
	} {
		opts, dir := place(t, map[string]string{"sub/f": "old\n", "sub/" + stale: "", "sub/" + fresh: "", "sub/" + mine: "", stale: ""})
		for _, name := range []string{"sub/" + stale, "sub/" + mine, stale} {
			aged(t, filepath.Join(dir, name), 2*time.Minute)
		}
		run(t, opts, tool, p)
		for name, want := range map[string]bool{"sub/" + stale: false, "sub/" + fresh: true, "sub/" + mine: true, stale: true} {
			if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != want {
				t.Errorf("%s: %s is there: %v", tool, name, err == nil)
			}
		}
	}
}
