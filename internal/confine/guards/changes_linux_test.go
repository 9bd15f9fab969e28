package guards

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

// nextTick waits until the clock of file systems has advanced.
func nextTick() {
	for start := time.Now(); !clock().After(start); { // a few milliseconds
	}
}

// Files that a sandboxed program may have changed are known until somebody else changes them or
// a person accepts them.
func TestChanges(t *testing.T) {
	logs := t.TempDir()
	dir, user := place(t, map[string]string{"old": "", "sub/old": "", "linked": ""})
	other := tooltest.Place(t, map[string]string{"old": "", "same": ""})
	elsewhere := tooltest.Place(t, map[string]string{"old": ""})
	tree := tooltest.Open(t, New(dir, user, logs))
	if c := ReadChanges(logs); !c.None(dir) || c.Has(filepath.Join(dir, "old"), true) {
		t.Error("changes before any program has run")
	}
	during := func(lasting bool, change func()) error {
		t.Helper()
		nextTick()
		g, err := tree.Guards(t.Context(), Scope{Folders: []string{other}, Lasting: lasting})
		if err != nil {
			t.Fatal(err)
		}
		change()
		_, err = g.Clean(t.Context(), everything)
		nextTick()
		return err
	}
	check := func(when string, want map[string]bool) {
		t.Helper()
		for path, changed := range want {
			if ReadChanges(logs).Has(path, false) != changed {
				t.Errorf("%s: %s has changed: %t", when, path, !changed)
			}
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := during(false, func() {
		put(t, dir, map[string]string{"new": "1", "sub/new": ""})
		put(t, other, map[string]string{"old": "2"})
		put(t, elsewhere, map[string]string{"old": "2"})
		for link, to := range map[string]string{"link": "old", "through": "sub"} {
			if err := os.Symlink(to, in(link)); err != nil {
				t.Error(err)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(in("new"), filepath.Join(elsewhere, "link")); err != nil {
		t.Fatal(err)
	}
	check("after the program", map[string]bool{
		in("new"): true, in("sub/new"): true, in("link"): true, in("through/new"): true, filepath.Join(elsewhere, "link"): true, filepath.Join(other, "old"): true,
		in("old"): false, in("sub/old"): false, in("none"): false, filepath.Join(other, "same"): false, filepath.Join(elsewhere, "old"): false,
	})
	if c := ReadChanges(logs); c.None(in("sub")) || c.None(filepath.Dir(dir)) || !c.None(elsewhere) || !c.HasBelow(dir) || !c.HasBelow(in("through")) || c.HasBelow(elsewhere) || c.HasBelow(in("none")) {
		t.Error("folders")
	}
	put(t, dir, map[string]string{"new": "hers"})
	if err := Accept(t.Context(), logs, []string{in("link"), filepath.Join(other, "old")}, time.Now()); err != nil {
		t.Fatal(err)
	}
	check("changed or accepted", map[string]bool{in("new"): false, in("link"): false, in("through/new"): true, in("sub/new"): true, filepath.Join(other, "old"): false})
	if err := Accept(t.Context(), logs, []string{in("sub")}, time.Now()); err != nil {
		t.Fatal(err)
	}
	check("a folder accepted", map[string]bool{in("link"): false, in("through/new"): false, in("sub/new"): false, filepath.Join(other, "old"): false})
	if err := during(false, func() { put(t, other, map[string]string{"old": "3"}) }); err != nil {
		t.Fatal(err)
	}
	check("after another program", map[string]bool{in("new"): false, filepath.Join(other, "old"): true})

	if err := during(true, func() { put(t, dir, map[string]string{"bin/new": "", "file": ""}) }); err != nil {
		t.Fatal(err)
	}
	check("after one that lasts", map[string]bool{in("file"): false})
	if !ReadChanges(logs).Has(in("bin/new"), true) {
		t.Error("a program that lasts changed another unnoticed")
	}

	put(t, logs, map[string]string{changesName: "{"})
	check("damaged", map[string]bool{in("old"): true})
	if err := during(false, func() {}); err != nil {
		t.Fatal(err)
	}
	check("written anew", map[string]bool{in("old"): false})
}

// A change is never older than what clock returned before it, or a program could change a file
// unnoticed right after its start.
func TestClockIsNotAheadOfFileSystems(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for range 50 {
		start := clock()
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			t.Fatal(err)
		}
		if changed := time.Unix(st.Ctim.Unix()); changed.Before(start) {
			t.Fatalf("changed %v before the clock", start.Sub(changed))
		}
	}
}

// The list of runs is bounded. Runs that are close to each other become one, so that nothing is
// forgotten.
func TestCloseRunsAreJoined(t *testing.T) {
	logs := t.TempDir()
	dir, user := place(t, map[string]string{"a": ""})
	path := filepath.Join(dir, "a")
	now := clock()
	minute := func(n int) time.Time { return now.Add(time.Duration(n) * time.Minute) }
	if err := update(t.Context(), logs, func(c *Changes) {
		for i := range maxRuns - 3 {
			c.Runs = append(c.Runs, run{Trees: []string{dir + "-other"}, From: minute(10 * (i + 1)), To: minute(10*(i+1) + 1)})
		}
		c.Runs = append(c.Runs, run{Trees: []string{dir + "-other"}, From: minute(-5), To: minute(-4), Lasting: true}, run{From: minute(-30), To: minute(-30)})
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first one is the last that has room
		g, err := tooltest.Open(t, New(dir, user, logs)).Guards(t.Context(), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		g.Started = now.Add(-4*time.Minute + time.Second)
		if _, err := g.Clean(t.Context(), everything); err != nil {
			t.Fatal(err)
		}
		if c := ReadChanges(logs); len(c.Runs) != maxRuns || !c.Has(path, false) {
			t.Errorf("%d runs; %s changed: %t", len(c.Runs), path, c.Has(path, false))
		}
	}
}

// Only the two runs with the least time between them are joined, so that few files count as
// changed that no program could change.
func TestJoinedRunsAreTheClosest(t *testing.T) {
	at := func(minute int64) time.Time { return time.Unix(60*minute, 0) }
	c := Changes{Runs: []run{
		{Trees: []string{"d"}, From: at(50), To: at(51)},
		{Trees: []string{"b"}, From: at(20), To: at(28), Lasting: true},
		{Trees: []string{"b", "c"}, From: at(30), To: at(31)},
		{Trees: []string{"a"}, From: at(0), To: at(1)},
	}}
	c.join()
	want := []run{
		{Trees: []string{"a"}, From: at(0), To: at(1)},
		{Trees: []string{"b", "c"}, From: at(20), To: at(31)},
		{Trees: []string{"d"}, From: at(50), To: at(51)},
	}
	if diff := cmp.Diff(want, c.Runs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
