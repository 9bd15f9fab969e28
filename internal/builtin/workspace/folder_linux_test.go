package workspace

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

// A read goes on if the kernel returns less than was asked for.
func TestReadAtReadsOn(t *testing.T) {
	root, err := os.OpenRoot("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	folder, err := OpenFolder(root, ".")
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	f, err := folder.Open("smaps") // at most a page at once
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data := make([]byte, 2*os.Getpagesize())
	if n, err := f.ReadAt(data, 0); n != len(data) || err != nil || data[n-1] == 0 {
		t.Errorf("%d bytes, the last %q, %v", n, data[n-1], err)
	}
}

// A walk closes the folders that it has read.
func TestWalkClosesFolders(t *testing.T) {
	opts, dir := place(t, nil)
	for i := range 50 {
		tooltest.Put(t, filepath.Join(dir, strconv.Itoa(i), "x"), "")
	}
	w := tooltest.Open(t, New(opts))
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := open()
	if _, err := w.Walk(t.Context(), WalkOptions{Start: ".", Each: func(int, *Entry) {}}); err != nil {
		t.Fatal(err)
	}
	if after := open(); after > before+10 {
		t.Errorf("%d files are open, %d before", after, before)
	}
}
