//go:build unix

package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadRefuses(t *testing.T) {
	dir := tempDir(t)
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	open := write(t, filepath.Join(dir, "open"), "x")
	if err := os.Chmod(open, 0o666|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, dir, "/dev/zero"} {
		if _, err := Read(path, 10); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Read(%s): %v, want ErrNotRegular", path, err)
		}
	}
	if _, err := Read(write(t, filepath.Join(dir, "long"), "12345678901"), 10); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a long file: %v, want ErrTooLarge", err)
	}
	if f, err := Read(write(t, filepath.Join(dir, "fits"), "1234567890"), 10); err != nil || string(f.Data) != "1234567890" {
		t.Errorf("a file at the limit: %q, %v", f.Data, err)
	}
	var owner *OwnerError
	if _, err := ReadOwned(open, 10); !errors.As(err, &owner) || !strings.Contains(err.Error(), "it is writable by everybody") {
		t.Errorf("ReadOwned of a world-writable file: %v", err)
	}
	if _, err := Read(open, 10); err != nil {
		t.Errorf("Read of a world-writable file: %v", err)
	}
	if reason := Foreign(open); reason == "" {
		t.Error("a sticky bit on a file does not make it safe")
	}
}

func TestDigest(t *testing.T) {
	dir := tempDir(t)
	path := write(t, filepath.Join(dir, "f"), strings.Repeat("x", 64<<10))
	if f, err := hashFile(path, 64<<10); err != nil || f.Size != 64<<10 || len(f.Data) != 64<<10 {
		t.Errorf("the longest text that is kept, at the limit: %d bytes, %d kept, %v", f.Size, len(f.Data), err)
	}
	if _, err := hashFile(path, 64<<10-1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
	long := write(t, filepath.Join(dir, "g"), strings.Repeat("x", 64<<10+1))
	if f, err := hashFile(long, 1<<20); err != nil || f.Size != 64<<10+1 || f.Data != nil {
		t.Errorf("a longer text: %d bytes, %d kept, %v", f.Size, len(f.Data), err)
	}
}

// TestForeign checks which folders and files another user could have written.
func TestForeign(t *testing.T) {
	dir := tempDir(t)
	folder := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link(t, "own", filepath.Join(dir, "link"))
	tests := map[string]string{
		folder("own", 0o755):                     "",
		folder("temporary", 0o777|os.ModeSticky): "", // others cannot replace our files in it
		folder("everybody's", 0o777):             "writable by everybody",
		filepath.Join(dir, "link"):               "", // the permissions of a link do not matter
		"/etc/passwd":                            "", // root may
		filepath.Join(dir, "nothing"):            "no such file",
	}
	if os.Geteuid() == 0 {
		path := write(t, filepath.Join(dir, "another's"), "")
		if err := os.Chown(path, 12345, -1); err != nil {
			t.Fatal(err)
		}
		tests[path] = "owned by user 12345"
	}
	for path, want := range tests {
		if got := Foreign(path); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestGroupWritableFile(t *testing.T) {
	dir := tempDir(t)
	path := write(t, filepath.Join(dir, "shared"), "x")
	if err := os.Chmod(path, 0o664); err != nil {
		t.Fatal(err)
	}
	var owner *OwnerError
	if _, err := ReadOwned(path, 10); os.Getegid() != os.Geteuid() || os.Geteuid() == 0 {
		if !errors.As(err, &owner) || !strings.Contains(err.Error(), "it is writable by group") {
			t.Errorf("ReadOwned of a group-writable file: %v", err)
		}
	} else if err != nil {
		t.Errorf("ReadOwned of a file of the user's own group: %v", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	st := &syscall.Stat_t{Uid: 1000, Gid: 1000}
	if !hasOwnGroup(st) {
		t.Error("a user's own group is treated as shared")
	}
	if st.Gid = 100; hasOwnGroup(st) {
		t.Error("a shared group is treated as the user's own")
	}
}

func TestReadResolvesLinks(t *testing.T) {
	dir := tempDir(t)
	target := write(t, filepath.Join(dir, "target"), "x")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if f, err := ReadOwned(link, 10); err != nil || f.Path != target {
		t.Errorf("path %s, %v, want %s", f.Path, err, target)
	}
}

func TestFileOwnedByAnotherUser(t *testing.T) {
	path := write(t, filepath.Join(tempDir(t), "theirs"), "x")
	if os.Geteuid() != 0 {
		path = "/proc/1/cmdline" // owned by root, which is trusted
		if reason := Foreign(path); reason != "" {
			t.Errorf("root's file: %s", reason)
		}
		return
	}
	if err := os.Chown(path, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if reason := Foreign(path); reason != "it is owned by user 12345" {
		t.Errorf("reason %q", reason)
	}
}

// TestProposed covers files that are reached through links, in missing folders,
// and existing ones.
func TestProposed(t *testing.T) {
	dir := tempDir(t)
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "real"), 0o700), os.Symlink("real", link)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(link, "a", "b", "settings.yaml")
	for _, text := range []string{"one", "another"} {
		proposed := Proposed(path, []byte(text))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		read, err := Read(path, 100)
		if diff := cmp.Diff(read, proposed); diff != "" || err != nil {
			t.Errorf("%s %v", diff, err)
		}
	}
}

// Pipes and devices, to which a link can lead, are skipped rather than read, which would
// block or not end.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	for name, create := range map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"device": func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		root := tempDir(t)
		write(t, filepath.Join(root, "run.py"), "")
		write(t, filepath.Join(root, "run.sh"), ". ./sourced.sh\n")
		if err := os.Mkdir(filepath.Join(root, "__pycache__"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"__pycache__/run.cpython-312.pyc", "sourced.sh", "named.sh", "package.json"} {
			if err := create(filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"run.py", "run.sh"}, names(t, root, Program{Argv: []string{"sh", "-c", "python3 run.py; ./run.sh; ./named.sh; npm start"}, Dir: root})); diff != "" {
			t.Errorf("%s: covered (-want +got):\n%s", name, diff)
		}
	}
}

// The identity of a folder does not change with its content, except with its .git,
// and changes if the folder is replaced.
func TestIdentity(t *testing.T) {
	dir := filepath.Join(tempDir(t), "p")
	if Identity(dir) != "" {
		t.Errorf("a folder that does not exist is %q", Identity(dir))
	}
	write(t, filepath.Join(dir, "a"), "")
	first := Identity(dir)
	write(t, filepath.Join(dir, "b"), "")
	if first == "" || Identity(dir) != first {
		t.Errorf("%q, and with one more file %q", first, Identity(dir))
	}
	write(t, filepath.Join(dir, ".git", "HEAD"), "")
	if cloned := Identity(dir); cloned == first || !strings.HasPrefix(cloned, first+" ") {
		t.Errorf("%q, and as a repository %q", first, cloned)
	}
	if err := os.Rename(dir, dir+"-before"); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a"), "")
	if again := Identity(dir); again == first {
		t.Errorf("another folder at the same path is also %q", again)
	}
}
