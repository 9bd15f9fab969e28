//go:build unix

package state

import (
	"errors"
	"os"
	"path/filepath"
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
