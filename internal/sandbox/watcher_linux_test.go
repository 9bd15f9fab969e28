//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// While a program runs, its log shows it for a while, until the guard of the program can; a
// watcher ends with its program.
func TestLogShowsThatTheProgramRuns(t *testing.T) {
	log, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, names := range []*Names{{Log: log}, {}} {
		listener, program, err := os.Pipe() // it has nothing to say
		if err != nil {
			t.Fatal(err)
		}
		w, err := watchNames(listener, names, nil)
		if err != nil {
			t.Fatal(err)
		}
		for names.Log != nil {
			if data, err := os.ReadFile(log.Name()); len(data) >= 20 || err != nil {
				break
			}
			runtime.Gosched()
		}
		program.Close()
		<-w.done
		w.close()
	}
	if data, err := os.ReadFile(log.Name()); string(data) != strings.Repeat("\x00", 20) {
		t.Errorf("the log has %q, %v", data, err)
	}
	(*watcher)(nil).close()
}

// An absolute path of a program is looked up in the root of the program, and a relative one in
// its working folder. A folder that is named through a link has no identity, because the program could change the link.
func TestPlacesAreThoseOfTheProgram(t *testing.T) {
	dir := tree(t, "etc/sub/", "work/inner/", "link -> etc", "work/up -> ../etc")
	process := t.TempDir() // as in /proc
	for name, target := range map[string]string{"root": dir, "cwd": dir + "/work"} {
		if err := os.Symlink(target, process+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]struct {
		folder, name string
		certain      bool
	}{
		"x": {"/work", "x", true}, "inner/x": {"/work/inner", "x", true}, "inner/x/": {"/work/inner", "x", true}, "../etc/x": {"/etc", "x", true},
		"/x": {"", "x", true}, "/etc/sub/x": {"/etc/sub", "x", true}, "/../etc/x": {"/etc", "x", true}, "up": {"/work", "up", true},
		"/link/sub/x": {"/etc/sub", "x", false}, "absent/x": {"absent", "x", false}, "..": {"absent", "", false}, "": {"absent", "", false},
	} {
		p := findPlace(process, process+"/cwd", path)
		if p.name != want.name || (p.id != "") != want.certain || (p.folder == nil) != (want.folder == "absent") || p.folder != nil && p.path != dir+want.folder {
			t.Errorf("%q: %+v, want %+v", path, p, want)
		}
		p.close()
	}
	if err := errors.Join(os.Remove(process+"/root"), os.Symlink("/", process+"/root")); err != nil {
		t.Fatal(err)
	}
	p := findPlace(process, process+"/cwd", "up/x")
	defer p.close()
	if p.name != "x" || p.id != "" || p.path != dir+"/etc" {
		t.Errorf("a relative path through a link: %+v", p)
	}
}

// A path may end at the last byte before memory that is not there, and may lie on two pages.
func TestPathsAreReadFromMemory(t *testing.T) {
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	long := strings.Repeat("x", 100)
	copy(memory[page-50:], long+"\x00")
	copy(memory[2*page-6:], "short\x00")
	if err := unix.Mprotect(memory[2*page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int]string{page - 50: long, 2*page - 6: "short", 2*page - 1: "", 2 * page: ""} {
		if got := readPath(os.Getpid(), uintptr(unsafe.Pointer(&memory[at]))); got != want {
			t.Errorf("at %d: %q, want %q", at, got, want)
		}
	}
}

// A request to the kernel that fails for another reason than a signal is not repeated.
func TestFailedControlsEnd(t *testing.T) {
	if err := control(-1, unix.SECCOMP_IOCTL_NOTIF_RECV, nil); !errors.Is(err, unix.EBADF) {
		t.Errorf("got %v", err)
	}
}
