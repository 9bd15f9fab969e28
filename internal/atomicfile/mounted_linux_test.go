package atomicfile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFilesThatCannotBeReplaced writes files that are mounted by themselves, as single files in
// a container are, also in a folder that is read-only.
func TestFilesThatCannotBeReplaced(t *testing.T) {
	if os.Getenv("ATOMICFILE_MOUNTS") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "ATOMICFILE_MOUNTS=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if _, ran := errors.AsType[*exec.ExitError](err); err != nil && !ran {
			t.Skip("no user namespaces:", err)
		}
		if t.Logf("in a namespace:\n%s", out); err != nil {
			t.Fail()
		}
		return
	}
	folder, dir := open(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, content string) {
		if err := os.WriteFile(path(name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	mount := func(from, to string, flags uintptr) {
		if err := syscall.Mount(from, to, "", flags, ""); err != nil {
			t.Skip("mounting:", err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(to, syscall.MNT_DETACH) })
	}
	if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""); err != nil {
		t.Skip("mounting:", err)
	}
	want := func(name, content string, mode os.FileMode) {
		t.Helper()
		got, err := os.ReadFile(path(name))
		info, statErr := os.Stat(path(name))
		if err != nil || statErr != nil || string(got) != content || info.Mode() != mode {
			t.Errorf("%s: %q, mode %v, want %q, %v; %v", name, got, info.Mode(), content, mode, err)
		}
	}

	write("outside", "a longer content\n")
	write("mounted", "")
	mount(path("outside"), path("mounted"), syscall.MS_BIND)
	like, err := os.Stat(path("mounted"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(folder, "mounted", []byte("new\n"), Options{Like: like}); err != nil {
		t.Error(err)
	}
	want("outside", "new\n", 0o644)
	if err := Write(folder, "mounted", []byte("private\n"), Options{Mode: 0o600}); err != nil {
		t.Error(err)
	}
	want("outside", "private\n", 0o600)
	if got := names(t, dir); got != "mounted outside" {
		t.Errorf("the folder holds %s", got)
	}

	if err := os.Mkdir(path("closed"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("closed/mounted", "")
	write("closed/file", "old\n")
	mount(path("closed"), path("closed"), syscall.MS_BIND)
	mount(path("outside"), path("closed/mounted"), syscall.MS_BIND)
	mount("", path("closed"), syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY)
	closed, err := os.OpenRoot(path("closed"))
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	f, err := Stage(closed, "mounted", []byte("in a closed folder\n"), Options{Like: like})
	if err != nil {
		t.Fatal(err)
	}
	want("outside", "private\n", 0o600)
	if err := f.Chmod(0o640); err != nil {
		t.Error(err)
	}
	if err := f.Commit(); err != nil {
		t.Error(err)
	}
	f.Close()
	want("outside", "in a closed folder\n", 0o640)
	if err := Write(closed, "file", []byte("new\n"), Options{}); err == nil {
		t.Error("a read-only file was written")
	}

	// Another name of the same file may be outside of the folder.
	if err := os.Link(path("outside"), path("other")); err != nil {
		t.Fatal(err)
	}
	for folder, name := range map[*os.Root]string{folder: "mounted", closed: "mounted"} {
		if err := Write(folder, name, []byte("x"), Options{}); err == nil {
			t.Error("a file with two names was written in place")
		}
	}
	want("outside", "in a closed folder\n", 0o640)
}
