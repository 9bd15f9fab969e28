//go:build unix

package atomicfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func open(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	folder, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	return folder, dir
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func TestModes(t *testing.T) {
	folder, dir := open(t)
	old := filepath.Join(dir, "old")
	if err := errors.Join(os.WriteFile(old, []byte("old"), 0o600), os.Chmod(old, 0o751)); err != nil {
		t.Fatal(err)
	}
	like, err := os.Stat(old)
	if err != nil {
		t.Fatal(err)
	}
	umask := syscall.Umask(0o027)
	defer syscall.Umask(umask)
	for _, tt := range []struct {
		name string
		o    Options
		want fs.FileMode
	}{
		{"old", Options{Like: like}, 0o751},
		{"plain", Options{}, 0o640},
		{"open", Options{Mode: 0o666}, 0o666},
		{"private", Options{Mode: 0o600, Volatile: true}, 0o600},
	} {
		if err := Write(folder, tt.name, []byte("new"), tt.o); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, tt.name))
		if err != nil || info.Mode() != tt.want {
			t.Errorf("%s: mode %v, want %v; %v", tt.name, info.Mode(), tt.want, err)
		}
	}
	if got := names(t, dir); got != "old open plain private" {
		t.Errorf("the folder holds %s", got)
	}
}

func TestOwnerIsKept(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	folder, dir := open(t)
	path := filepath.Join(dir, "f")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 1234, 1235), os.Chmod(path, 0o4755|fs.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	like, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(folder, "f", []byte("new"), Options{Like: like}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 1234 || st.Gid != 1235 || info.Mode() != 0o755 {
		t.Errorf("owner %d:%d, mode %v", st.Uid, st.Gid, info.Mode())
	}
}

func TestReadersSeeOldOrNew(t *testing.T) {
	folder, dir := open(t)
	if err := Write(folder, "f", bytes.Repeat([]byte("a"), 1<<16), Options{}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, letter := range []string{"a", "b"} {
		wg.Go(func() {
			for range 20 {
				if err := Write(folder, "f", bytes.Repeat([]byte(letter), 1<<16), Options{Volatile: true}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		got, err := os.ReadFile(filepath.Join(dir, "f"))
		if err != nil || string(got) != strings.Repeat(string(got[:1]), 1<<16) {
			t.Fatal("half of one content and half of another", err)
		}
	}
	wg.Wait()
}

// If a write fails, no temporary file is left and the old file is unchanged.
func TestFailedWriteLeavesNothing(t *testing.T) {
	folder, dir := open(t)
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(folder, "sub", []byte("x"), Options{}); err == nil || !strings.HasPrefix(err.Error(), "renaming the temporary file: ") {
		t.Errorf("over a folder: %v", err)
	}
	if err := Write(folder, "f", []byte("x"), Options{Temp: "absent/f"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a missing folder: %v", err)
	}
	f, err := Stage(folder, "f", []byte("x"), Options{Temp: "f.tmp-1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); got != "f.tmp-1 sub" {
		t.Errorf("staged: %s", got)
	}
	f.Close()
	if got := names(t, dir); got != "sub" {
		t.Errorf("closed: %s", got)
	}
}

func TestSweep(t *testing.T) {
	folder, dir := open(t)
	random := strings.Repeat("AZ27", 7)[:tempRandom]
	stale, fresh, foreign := tempPrefix+random+tempSuffix, tempPrefix+strings.Repeat("B", tempRandom)+tempSuffix, tempPrefix+"notes"+tempSuffix
	for _, name := range []string{stale, fresh, foreign} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if name == fresh {
			continue
		}
		when := time.Now().Add(-2 * tempStale)
		if err := os.Chtimes(filepath.Join(dir, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	Sweep(folder)
	if got := names(t, dir); got != fresh+" "+foreign {
		t.Errorf("left: %s", got)
	}
}
