//go:build unix

package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	dir, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	dir.Wait = long
	return dir
}

func write(t *testing.T, dir *Dir, name, content string) {
	t.Helper()
	err := dir.Update(t.Context(), name, func([]byte) ([]byte, error) { return []byte(content), nil })
	if err != nil {
		t.Fatal(err)
	}
}

func TestUpdate(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "a/b/toolreg"))
	if _, err := dir.Read("f"); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrUnavailable) {
		t.Errorf("reading before the first write: %v", err)
	}
	if _, err := os.Stat(dir.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("reading created the directory")
	}
	var seen []string
	for _, next := range []string{"one", "", "two"} {
		err := dir.Update(t.Context(), "f", func(old []byte) ([]byte, error) {
			if old == nil {
				seen = append(seen, "nil")
			} else {
				seen = append(seen, string(old))
			}
			return []byte(next), nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"nil", "one", ""}, seen); diff != "" {
		t.Errorf("old values (-want +got):\n%s", diff)
	}
	if got, err := dir.Read("f"); string(got) != "two" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestUpdateWritesOnlyChanges(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	write(t, dir, "f", "same")
	before, err := os.Stat(filepath.Join(dir.Path, "f"))
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("not this one")
	for name, change := range map[string]func([]byte) ([]byte, error){
		"equal": func(old []byte) ([]byte, error) { return old, nil },
		"nil":   func([]byte) ([]byte, error) { return nil, nil },
		"error": func([]byte) ([]byte, error) { return []byte("lost"), refused },
	} {
		err := dir.Update(t.Context(), "f", change)
		if (name == "error") != (err == refused) { // the error must be returned unchanged
			t.Errorf("%s: %v", name, err)
		}
		after, statErr := os.Stat(filepath.Join(dir.Path, "f"))
		if statErr != nil || !os.SameFile(before, after) {
			t.Errorf("%s: the file was replaced, %v", name, statErr)
		}
	}
}

func TestFilesArePrivateWithAnyUmask(t *testing.T) {
	for _, umask := range []int{0, 0o777} {
		path := filepath.Join(t.TempDir(), "parent/toolreg")
		old := syscall.Umask(umask)
		dir := open(t, path)
		write(t, dir, "f", "x")
		err := dir.Append(t.Context(), "log", []byte("x"))
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]fs.FileMode{"..": 0o700, ".": 0o700, "f": 0o600, "f.lock": 0o600, "log": 0o600} {
			info, err := os.Stat(filepath.Join(path, name))
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != want {
				t.Errorf("umask %o: %s has mode %o, want %o", umask, name, got, want)
			}
		}
	}
}

func TestModeOfLooseDirectoryIsFixed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "toolreg")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %o, %v", info.Mode().Perm(), err)
	}
}

func TestHostileDirectoriesAreRefused(t *testing.T) {
	base := t.TempDir()
	elsewhere := filepath.Join(base, "elsewhere")
	for _, err := range []error{
		os.Mkdir(elsewhere, 0o755),
		os.Symlink(elsewhere, filepath.Join(base, "link")),
		os.Symlink(filepath.Join(base, "absent"), filepath.Join(base, "dangling")),
		os.WriteFile(filepath.Join(base, "file"), nil, 0o600),
		os.Mkdir(filepath.Join(base, "foreign"), 0o700),
		os.Chown(filepath.Join(base, "foreign"), os.Getuid()+1, -1),
	} {
		if err != nil && !errors.Is(err, fs.ErrPermission) { // only root can give away
			t.Fatal(err)
		}
	}
	tests := map[string]string{
		"link": "symbolic link", "dangling": "symbolic link", "file": "not a directory",
		"file/below": "", "/dev/null/x": "", "/dev/full": "not a directory",
	}
	if os.Getuid() == 0 {
		tests["foreign"] = "is owned by user"
	}
	for name, reason := range tests {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(base, name)
		}
		dir, err := OpenDir(path)
		if err == nil {
			err = dir.Append(t.Context(), "f", []byte("x"))
		}
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenDir("relative"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a relative path: %v", err)
	}
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) > 0 {
		t.Errorf("something was written through the link: %v, %v", entries, err)
	}
}

// A directory that is swapped for a link after it was opened is not followed.
func TestDirectorySwappedForALink(t *testing.T) {
	base := t.TempDir()
	dir := open(t, filepath.Join(base, "toolreg"))
	write(t, dir, "f", "x")
	for _, err := range []error{
		os.Rename(dir.Path, filepath.Join(base, "old")),
		os.Mkdir(filepath.Join(base, "evil"), 0o700),
		os.Symlink(filepath.Join(base, "evil"), dir.Path),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := dir.Append(t.Context(), "f", []byte("y")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("append: %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Join(base, "evil")); len(entries) > 0 {
		t.Errorf("written through the link: %v", entries)
	}
}

func TestHostileFilesAreRefused(t *testing.T) {
	base := t.TempDir()
	dir := open(t, filepath.Join(base, "toolreg"))
	write(t, dir, "f", "x")
	secret := filepath.Join(base, "secret")
	for _, err := range []error{
		os.WriteFile(secret, []byte("secret"), 0o600),
		os.Symlink(secret, filepath.Join(dir.Path, "link")),
		syscall.Mkfifo(filepath.Join(dir.Path, "pipe"), 0o600),
		syscall.Mkfifo(filepath.Join(dir.Path, "locked.lock"), 0o600),
		os.Mkdir(filepath.Join(dir.Path, "folder"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	grow := func([]byte) ([]byte, error) { return []byte("evil"), nil }
	for _, name := range []string{"", ".", "..", "../secret", "a/b", `a\b`, "x\x00"} {
		if unlock, err := dir.Lock(t.Context(), name); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Lock(%q): %v", name, err)
			unlock()
		}
	}
	if names, err := dir.Names("", ".lock"); !slices.Equal(names, []string{"f.lock"}) {
		t.Errorf("locks %q, %v", names, err)
	}
	for _, name := range []string{"link", "pipe", "folder", "..", "../secret", "a/b", "", "x\x00"} {
		if data, err := dir.Read(name); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Read(%q) = %q, %v", name, data, err)
		}
		if err := dir.Update(t.Context(), name, grow); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Update(%q): %v", name, err)
		}
		if err := dir.Append(t.Context(), name, []byte("evil")); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Append(%q): %v", name, err)
		}
	}
	if err := dir.Update(t.Context(), "locked", grow); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a pipe for a lock: %v", err)
	}
	if got, err := os.ReadFile(secret); string(got) != "secret" {
		t.Errorf("the target of the link holds %q, %v", got, err)
	}
}

// A thousand calls that remember something at once must not take a thread each.
func TestWaitingForLockTakesNoThreads(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	write(t, dir, "f", "old")
	held := flock.New(filepath.Join(dir.Path, "f.lock"))
	if err := held.Lock(); err != nil {
		t.Fatal(err)
	}
	threads := pprof.Lookup("threadcreate")
	before := threads.Count()
	dir.Wait = 100 * time.Millisecond
	var waiting sync.WaitGroup
	for range 200 {
		waiting.Go(func() {
			if err := dir.Update(t.Context(), "f", func([]byte) ([]byte, error) { return []byte("late"), nil }); !errors.Is(err, ErrUnavailable) {
				t.Errorf("while another process has the lock: %v", err)
			}
		})
	}
	waiting.Wait()
	if n := threads.Count() - before; n > 50 {
		t.Errorf("%d threads were started", n)
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	dir.Wait = long
	write(t, dir, "f", "new")
	if got, err := dir.Read("f"); string(got) != "new" {
		t.Errorf("afterwards: %q, %v", got, err)
	}
}

// A file that is too large is an error: it is not cut, which would damage it when it is replaced.
func TestLargestFile(t *testing.T) {
	dir := open(t, t.TempDir())
	write(t, dir, "f", "")
	for size, want := range map[int64]string{MaxFile: "", MaxFile + 1: "is larger than 67108864 bytes"} {
		if err := os.Truncate(filepath.Join(dir.Path, "f"), size); err != nil {
			t.Fatal(err)
		}
		data, err := dir.Read("f")
		if want == "" && (int64(len(data)) != size || err != nil) || want != "" && (!errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), want)) {
			t.Errorf("of %d bytes %d are read, %v", size, len(data), err)
		}
	}
}

func TestUpdateWaitsForLock(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	write(t, dir, "f", "old")
	held := flock.New(filepath.Join(dir.Path, "f.lock"))
	if err := held.Lock(); err != nil {
		t.Fatal(err)
	}
	never := func([]byte) ([]byte, error) { t.Error("changed without the lock"); return nil, nil }

	dir.Wait = time.Millisecond
	if err := dir.Update(t.Context(), "f", never); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "f.lock") {
		t.Errorf("a lock that stays: %v", err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	dir.Wait = long
	if err := dir.Update(ctx, "f", never); !errors.Is(err, cause) {
		t.Errorf("a context that ended: %v", err)
	}

	done := make(chan error)
	go func() {
		done <- dir.Update(t.Context(), "f", func([]byte) ([]byte, error) { return []byte("new"), nil })
	}()
	if got, err := dir.Read("f"); string(got) != "old" {
		t.Errorf("before: %q, %v", got, err)
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got, err := dir.Read("f"); string(got) != "new" {
		t.Errorf("after: %q, %v", got, err)
	}
}

func TestDamagedFilesAreSetAside(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	change := func(old []byte) ([]byte, error) {
		if strings.HasPrefix(string(old), "bad") {
			return nil, fmt.Errorf("reading: %w", ErrDamaged)
		}
		return append(old, '+'), nil
	}
	names := map[string]bool{}
	for _, content := range []string{"bad 1", "bad 2", "bad 1"} {
		write(t, dir, "f", content)
		aside, err := dir.UpdateOrSetAside(t.Context(), "f", change)
		if err != nil {
			t.Fatal(err)
		}
		names[aside] = true
		if got, err := os.ReadFile(aside); string(got) != content || !strings.HasPrefix(aside, filepath.Join(dir.Path, "f.bad-")) {
			t.Errorf("%s holds %q, %v, want %q", aside, got, err, content)
		}
		if got, err := dir.Read("f"); string(got) != "+" {
			t.Errorf("the file starts with %q, %v, as if it had been absent", got, err)
		}
	}
	if len(names) != 2 {
		t.Errorf("names %v, want one for each content", names)
	}
	if aside, err := dir.UpdateOrSetAside(t.Context(), "f", change); aside != "" || err != nil {
		t.Errorf("a good file was set aside as %q, %v", aside, err)
	}
	if got, _ := dir.Read("f"); string(got) != "++" {
		t.Errorf("a good file became %q", got)
	}
	if aside, err := dir.UpdateOrSetAside(t.Context(), "absent", func([]byte) ([]byte, error) { return nil, nil }); aside != "" || err != nil {
		t.Errorf("an absent file: %q, %v", aside, err)
	}
}

func TestDamagedFileStaysIfUpdateFails(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	write(t, dir, "f", "bad")
	failed := errors.New("no")
	_, err := dir.UpdateOrSetAside(t.Context(), "f", func(old []byte) ([]byte, error) {
		if old != nil {
			return nil, ErrDamaged
		}
		return nil, failed
	})
	if got, readErr := dir.Read("f"); !errors.Is(err, failed) || string(got) != "bad" {
		t.Errorf("%v left %q, %v", err, got, readErr)
	}
}

func BenchmarkUpdate(b *testing.B) {
	dir, err := OpenDir(filepath.Join(b.TempDir(), "toolreg"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := dir.Update(b.Context(), "counter", increment); err != nil {
			b.Fatal(err)
		}
	}
}
