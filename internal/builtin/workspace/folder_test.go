package workspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

// Only regular files and folders are opened in a folder: a link that replaced
// an entry is not followed, and a named pipe does not block.
func TestFolderFollowsNoLinks(t *testing.T) {
	outside := t.TempDir()
	tooltest.Put(t, filepath.Join(outside, "secret"), "secret")
	opts, dir := place(t, map[string]string{"sub/file": "0123456789"})
	for link, target := range map[string]string{"out": outside, "sub/out": filepath.Join(outside, "secret"), "sub/near": "file", "in": "sub"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	tooltest.MakePipe(t, filepath.Join(dir, "sub/pipe"))
	root, err := New(opts).Root()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	top, err := OpenFolder(root, ".")
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	for _, name := range []string{"out", "in", "absent", "sub/file"} {
		if d, err := top.dir(name); err == nil && name != "in" {
			t.Errorf("%s was opened", name)
			d.Close()
		} else if err == nil { // with an os.Root, links inside are followed
			d.Close()
		}
	}
	sub, err := top.dir("sub")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for name, want := range map[string]error{"out": nil, "absent": os.ErrNotExist, "pipe": ErrKind} {
		if f, err := sub.Open(name); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	if _, err := OpenFolder(root, "out"); err == nil {
		t.Error("a link out of the workspace was followed")
	}
}

func TestOpenFileReads(t *testing.T) {
	opts, dir := place(t, map[string]string{"sub/file": "0123456789", "sub/empty": ""})
	tooltest.Aged(t, filepath.Join(dir, "sub/file"), time.Hour)
	root, err := New(opts).Root()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	sub, err := OpenFolder(root, "sub")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	f, err := sub.Open("file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Size != 10 || !f.Changed.Equal(sub.Changed("file")) || time.Since(f.Changed) < 50*time.Minute {
		t.Errorf("size %d, changed %v", f.Size, f.Changed)
	}
	part := make([]byte, 4)
	if n, err := f.ReadAt(part, 8); n != 2 || !errors.Is(err, io.EOF) || string(part[:n]) != "89" {
		t.Errorf("ReadAt past the end: %d, %v, %q", n, err, part)
	}
	if n, err := f.ReadAt(part, 2); n != 4 || err != nil || string(part) != "2345" {
		t.Errorf("ReadAt inside: %d, %v, %q", n, err, part)
	}
	if _, err := OpenFolder(root, "sub/file"); err == nil {
		t.Error("a file was opened as a folder")
	}
	if _, err := f.Seek(3, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(f); string(rest) != "3456789" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	entries, err := sub.Entries()
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if slices.Sort(names); err != nil || !slices.Equal(names, []string{"empty", "file"}) {
		t.Errorf("%q, %v", names, err)
	}
	if !sub.Changed("absent").IsZero() {
		t.Error("an absent file has a time")
	}
}

// All entries of a large folder are read.
func TestOpenDirReadsManyEntries(t *testing.T) {
	opts, dir := place(t, nil)
	want := map[string]bool{}
	for i := range 300 {
		name := fmt.Sprintf("%d-%s", i, strings.Repeat("n", i%120))
		want[name] = true
		tooltest.Put(t, filepath.Join(dir, name), "")
	}
	root, err := New(opts).Root()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	top, err := OpenFolder(root, ".")
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	entries, err := top.Entries()
	for _, e := range entries {
		if !want[e.Name()] || e.Type() != 0 {
			t.Errorf("%q of kind %v", e.Name(), e.Type())
		}
		delete(want, e.Name())
	}
	if len(want) > 0 || err != nil {
		t.Errorf("%d are missing, %v", len(want), err)
	}
}
