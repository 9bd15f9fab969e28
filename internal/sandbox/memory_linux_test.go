//go:build amd64 || arm64

package sandbox

import (
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The path of a system call is read wherever in the memory of a process it is.
func TestPathsInMemory(t *testing.T) {
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 4*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	if err := unix.Mprotect(memory[3*page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	longest := strings.Repeat("x", unix.PathMax-1)
	for _, c := range []struct {
		at   int
		text string
	}{
		{0, ""}, {0, longest}, {10, "/a/b"}, {page - 2, "/crosses"}, {page + 1, longest}, {2 * page, "begins a page"}, {3*page - 5, "last"}, {3*page - unix.PathMax, longest},
	} {
		clear(memory[:3*page])
		copy(memory[c.at:], c.text)
		if got := readPath(os.Getpid(), uintptr(unsafe.Pointer(&memory[c.at]))); got != c.text {
			t.Errorf("at %d: %.20q of %d bytes, not %.20q", c.at, got, len(got), c.text)
		}
	}
	if got := readPath(os.Getpid(), uintptr(unsafe.Pointer(&memory[0]))+uintptr(3*page)); got != "" {
		t.Errorf("memory that cannot be read has %q", got)
	}
}

// A path through a descriptor means its file, unless a file only has such a name.
func TestDescriptorsInPaths(t *testing.T) {
	for path, want := range map[string]string{"/proc/self/fd/3": "3", "/dev/fd/12": "12", "/proc/thread-self/fd/0": "0", "/proc/self/fd/x": "", "/dev/fd/": "", "/dev/null": "", "dev/fd/3": ""} {
		fd, ok := descriptor(path)
		if ok != (want != "") || ok && fd != want {
			t.Errorf("%s leads to %q, %v", path, fd, ok)
		}
	}
}
