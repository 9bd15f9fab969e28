//go:build unix

package state

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPutAndCreate(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "cache", "toolreg"))
	for _, content := range []string{"one", "two"} {
		if err := dir.Put("a", []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := dir.Read("a"); string(got) != "two" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	f, err := dir.Create("b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Create("b"); !errors.Is(err, ErrUnavailable) || !errors.Is(err, os.ErrExist) {
		t.Errorf("a taken name: %v", err)
	}
	for _, name := range []string{"../x", "", "a/b"} {
		if err := dir.Put(name, nil); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestSweepByAgeAndNumber(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	now := time.Now()
	if err := dir.Sweep(now, Bounds{Age: time.Hour, Files: 1}); err != nil {
		t.Errorf("an absent directory: %v", err)
	}
	for name, age := range map[string]time.Duration{"new": 0, "newer": -time.Second, "third": time.Minute, "old": 2 * time.Hour} {
		if err := dir.Put(name, []byte("x")); err != nil {
			t.Fatal(err)
		}
		when := now.Add(-age)
		if err := os.Chtimes(filepath.Join(dir.Path, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	if err := dir.Sweep(now, Bounds{Age: time.Hour, Files: 10}); err != nil {
		t.Fatal(err)
	}
	left := func() (names []string) {
		entries, err := os.ReadDir(dir.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if diff := cmp.Diff([]string{"new", "newer", "third"}, left()); diff != "" {
		t.Errorf("by age (-want +got):\n%s", diff)
	}
	if err := dir.Sweep(now, Bounds{Age: time.Hour, Files: 2}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"new", "newer"}, left()); diff != "" {
		t.Errorf("by number (-want +got):\n%s", diff)
	}
}

func TestSweep(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	now := time.Now()
	put := func(name string, size int, age time.Duration) {
		t.Helper()
		when := now.Add(-age)
		if err := errors.Join(dir.Put(name, make([]byte, size)), os.Chtimes(filepath.Join(dir.Path, name), when, when)); err != nil {
			t.Fatal(err)
		}
	}
	put("a", 40, 0)
	put("b", 40, time.Minute)
	put("c", 40, 2*time.Minute)
	put("d", 20, 3*time.Minute)
	put("e.tmp-BEINGWRITTEN", 500, 0)
	put("f.tmp-LEFT", 1, time.Hour)
	if err := dir.Sweep(now, Bounds{Bytes: 100}); err != nil {
		t.Fatal(err)
	}
	files, err := dir.Files()
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, f := range files {
		left = append(left, f.Name())
	}
	slices.Sort(left)
	if diff := cmp.Diff([]string{"a", "b", "d", "e.tmp-BEINGWRITTEN"}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// A file of exactly the age stays, and one that another run may still be writing.
func TestSweepAtTheBounds(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	now := time.Now().Truncate(time.Second)
	for name, age := range map[string]time.Duration{"a": time.Hour, "b": time.Hour + time.Second, "c.tmp-X": staleTemp, "d.tmp-X": staleTemp + time.Second} {
		if err := errors.Join(dir.Put(name, nil), os.Chtimes(filepath.Join(dir.Path, name), now.Add(-age), now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	if err := dir.Sweep(now, Bounds{Age: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if names, err := dir.Names("", ""); !slices.Equal(names, []string{"a", "c.tmp-X"}) {
		t.Errorf("left %q, %v", names, err)
	}
}

func TestClear(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	if n, err := dir.Clear(); n != 0 || err != nil {
		t.Errorf("an absent folder: %d, %v", n, err)
	}
	const files = 8 // so many that they do not all come before the first lock in the folder
	for i := range files {
		write(t, dir, fmt.Sprintf("%d.json", i), "x")
	}
	if err := os.Mkdir(filepath.Join(dir.Path, "folder.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if n, err := dir.Clear(); n != files || err != nil {
		t.Errorf("%d files were removed, %v", n, err)
	}
	if entries, err := os.ReadDir(dir.Path); len(entries) != files+1 || err != nil { // the locks and the folder
		t.Errorf("left %v, %v", entries, err)
	}
	replaceByFile(t, dir)
	if _, err := dir.Clear(); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a file in place of the folder: %v", err)
	}
}

// replaceByFile puts a file where the folder was.
func replaceByFile(t *testing.T, dir *Dir) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(dir.Path), os.WriteFile(dir.Path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// Only regular files are listed.
func TestListedFiles(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	for _, list := range []func() (int, error){
		func() (int, error) { files, err := dir.Files(); return len(files), err },
		func() (int, error) { names, err := dir.Names("", ""); return len(names), err },
	} {
		if n, err := list(); n != 0 || err != nil {
			t.Errorf("an absent folder: %d, %v", n, err)
		}
	}
	for _, name := range []string{"a.json", "a.lock", "b.json"} {
		if err := dir.Put(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir.Path, "a2.json"), 0o700), os.Symlink("a.json", filepath.Join(dir.Path, "a3.json"))); err != nil {
		t.Fatal(err)
	}
	if files, err := dir.Files(); len(files) != 3 || err != nil {
		t.Errorf("files %v, %v", files, err)
	}
	if names, err := dir.Names("a", ".json"); !slices.Equal(names, []string{"a.json"}) || err != nil {
		t.Errorf("names %q, %v", names, err)
	}
	replaceByFile(t, dir)
	_, ofFiles := dir.Files()
	_, ofNames := dir.Names("", "")
	if !errors.Is(ofFiles, ErrUnavailable) || !errors.Is(ofNames, ErrUnavailable) || !errors.Is(dir.Sweep(time.Now(), Bounds{}), ErrUnavailable) {
		t.Errorf("a file in place of the folder: %v, %v", ofFiles, ofNames)
	}
}

func TestRemove(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	write(t, dir, "f", "x")
	for range 2 {
		if err := dir.Remove(t.Context(), "f"); err != nil {
			t.Errorf("removing it: %v", err)
		}
		if _, err := dir.Read("f"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it is there: %v", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir.Path, "folder/below"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := dir.Remove(t.Context(), "folder"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a folder that is not empty: %v", err)
	}
}

// A run that writes for hours does not run out of descriptors.
func TestNothingStaysOpen(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would close what nobody uses
	count := func() int {
		entries, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries)
	}
	use := func() {
		write(t, dir, "f", rand.Text())
		unlock, err := dir.Lock(t.Context(), "f")
		if err != nil {
			t.Fatal(err)
		}
		unlock()
		_, err = dir.Read("f")
		if err := errors.Join(err, dir.Append(t.Context(), "log", []byte("line")), dir.Rotate(t.Context(), "log", 1, 1)); err != nil {
			t.Fatal(err)
		}
	}
	use()
	before := count()
	for range 5 {
		use()
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors became %d", before, after)
	}
}
