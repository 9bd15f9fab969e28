package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

// A folder or file that was replaced by a link after its path was resolved is not
// followed to another place in the workspace.
func TestReplacementByLinkIsNotFollowed(t *testing.T) {
	opts, dir := place(t, map[string]string{"guarded/f": "old", "guarded/sub/x": "x"})
	tooltest.Link(t, "guarded", filepath.Join(dir, "free"))
	tooltest.Link(t, "guarded/f", filepath.Join(dir, "file"))
	w := tooltest.Open(t, NewEditor(opts))
	for name, use := range map[string]func() error{
		"write":      func() error { return w.WriteFile("free/f", []byte("new"), 0) },
		"write new":  func() error { return w.WriteFile("free/made/new", []byte("new"), 0) },
		"write file": func() error { return w.WriteFile("file", []byte("new"), 0) },
		"remove":     func() error { return w.RemoveFile("free/f") },
		"open":       func() error { _, _, err := w.OpenFile("free/f"); return err },
		"open deep":  func() error { _, _, err := w.OpenFile("free/sub/x"); return err },
		"open file":  func() error { _, _, err := w.OpenFile("file"); return err },
		"start":      func() error { _, err := w.OpenStart("free"); return err },
		"walk":       func() error { _, err := w.Walk(t.Context(), WalkOptions{Start: "free/sub"}); return err },
	} {
		if err := use(); err == nil || name != "write file" && !errors.Is(err, errMoved) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tooltest.Link(t, "loop", filepath.Join(dir, "loop"))
	for name, want := range map[string]error{"absent/f": os.ErrNotExist, "guarded/f/x": syscall.ENOTDIR, "loop/f": syscall.ELOOP} {
		if _, _, err := w.OpenFile(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "absent")); err == nil {
		t.Error("a folder was created for a file to be read")
	}
	if got := content(t, filepath.Join(dir, "guarded/f")); got != "old" {
		t.Errorf("the file holds %q", got)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "guarded")); err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v; %v", entries, err)
	}
}
