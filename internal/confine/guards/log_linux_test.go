package guards

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/git"
	"github.com/toolreg/toolreg/internal/sandbox"
)

// The log of a program whose toolreg was killed has the names that the program used.
func TestNextCallCleansAfterAKilledOne(t *testing.T) {
	dir, user := place(t, map[string]string{".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".envrc": "mine", "sub/a": ""})
	logs := t.TempDir()
	killed := func(names ...string) *Guards {
		t.Helper()
		g, err := tooltest.Open(t, New(dir, user, logs)).Guards(t.Context(), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if _, err := g.Log().WriteString("/" + name + "\x00"); err != nil {
				t.Fatal(err)
			}
		}
		return g
	}
	next := func() Cleaned {
		t.Helper()
		g, err := tooltest.Open(t, New(dir, user, logs)).Guards(t.Context(), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Forget()
		return g.before
	}

	g := killed(".bashrc", ".envrc", "hooks")
	put(t, dir, map[string]string{"sub/.bashrc": "", ".git/hooks/pre-commit": "", "sub/.npmrc": "hers"})
	if cleaned := next(); len(cleaned.Removed)+len(cleaned.Kept) > 0 {
		t.Errorf("while the program runs: %q", cleaned)
	}
	_ = g.Log().Close()
	put(t, dir, map[string]string{"last": ""})
	last, err := os.Stat(filepath.Join(dir, "last"))
	if err != nil {
		t.Fatal(err)
	}
	if late := last.ModTime().Add(-100 * time.Millisecond); os.Chtimes(g.Log().Name(), late, late) != nil { // the machine was busy
		t.Fatal("cannot set the time of the log")
	}
	want := Cleaned{Removed: []string{".git/hooks", "sub/.bashrc"}, Kept: []string{"sub/.npmrc"}}
	if diff := cmp.Diff(want, next()); diff != "" {
		t.Error(diff)
	}
	if cleaned := next(); len(cleaned.Removed)+len(cleaned.Kept) > 0 {
		t.Errorf("again: %q", cleaned)
	}
	if text := tooltest.TextIn(t, filepath.Join(dir, ".envrc")); text != "mine" {
		t.Errorf("her file has %q", text)
	}

	// What has changed since the program was last known to run can be hers.
	g = killed(".profile")
	_ = g.Log().Close()
	tooltest.Aged(t, g.Log().Name(), time.Minute)
	put(t, dir, map[string]string{"sub/.profile": "hers"})
	if diff := cmp.Diff(Cleaned{Kept: []string{"sub/.profile"}}, next()); diff != "" {
		t.Error(diff)
	}

	// A record of another folder with the same path says nothing about this one.
	g = killed(".login")
	_ = g.Log().Close()
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{".login": "hers"})
	if cleaned := next(); len(cleaned.Removed) > 0 {
		t.Errorf("removed from another folder: %q", cleaned)
	}
	if left, _ := filepath.Glob(filepath.Join(logs, "*.log")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// If a program cannot be recorded, as on a full disk, which has room for names but not for data, what
// was changed from then on counts as changed, until a later program is recorded and after it.
func TestProgramsThatCannotBeRecorded(t *testing.T) {
	dir, user := place(t, map[string]string{"old": "", "new": ""})
	logs := t.TempDir()
	tree := tooltest.Open(t, New(dir, user, logs))
	changed := func(name string, want bool) {
		t.Helper()
		if got := ReadChanges(logs).Has(filepath.Join(dir, name), false); got != want {
			t.Errorf("%s has changed: %t", name, got)
		}
	}
	run := func(name string) *Guards {
		t.Helper()
		nextTick()
		g, err := tree.Guards(t.Context(), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		put(t, dir, map[string]string{name: "x", "." + name + "rc": "x"})
		_, err = g.Clean(t.Context(), everything)
		if err != nil {
			t.Fatal(err)
		}
		nextTick()
		return g
	}
	if err := os.MkdirAll(filepath.Join(logs, changesName, "x"), 0o700); err != nil { // so it cannot be written
		t.Fatal(err)
	}
	run("new")
	run("newer")
	if err := os.RemoveAll(filepath.Join(logs, changesName)); err != nil {
		t.Fatal(err)
	}
	changed("new", true)
	changed("newer", true)
	changed("old", false)
	if ReadChanges(logs).None(dir) {
		t.Error("no program has run")
	}
	if g := run("later"); g.Unrecorded != nil {
		t.Error(g.Unrecorded)
	}
	if _, err := os.Lstat(filepath.Join(logs, unrecordedName)); err == nil {
		t.Error("the mark was left")
	}
	changed("new", true)
	changed("later", true)
	changed("old", false)

	// If not even a name can be created, the program runs all the same.
	gone := tooltest.Open(t, New(dir, user, filepath.Join(logs, "none")))
	g, err := gone.Guards(t.Context(), Scope{})
	if err != nil || g.Unrecorded == nil {
		t.Fatal(g, err)
	}
	if _, err := g.Clean(t.Context(), everything); err != nil {
		t.Error(err)
	}
}

// If it can no longer be recorded that a program ran, its log stays for the next call.
func TestLogStaysUntilTheRunIsRecorded(t *testing.T) {
	dir, user := place(t, nil)
	logs := t.TempDir()
	tree := tooltest.Open(t, New(dir, user, logs))
	g, err := tree.Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{changesName, unrecordedName} { // so neither can be written
		if err := os.MkdirAll(filepath.Join(logs, name, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Clean(t.Context(), everything); err == nil || !strings.Contains(err.Error(), "recording that a sandboxed program ran") {
		t.Errorf("got %v", err)
	}
	if !Uncleaned(logs, dir) {
		t.Error("the log is gone")
	}
}

// A folder is uncleaned while a program runs in it or around it, and after toolreg was killed.
func TestUncleaned(t *testing.T) {
	dir, logs := tooltest.Place(t, map[string]string{"sub/a": ""}), t.TempDir()
	tooltest.Link(t, dir, filepath.Join(logs, "link"))
	uncleaned := func(folder string, want bool) {
		t.Helper()
		if got := Uncleaned(logs, folder); got != want {
			t.Errorf("Uncleaned(%q) = %v", folder, got)
		}
	}
	start := func(scope Scope) *Guards {
		t.Helper()
		g, err := tooltest.Open(t, New(dir, git.User{}, logs)).Guards(t.Context(), scope)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	uncleaned(dir, false)
	g := start(Scope{})
	for folder, want := range map[string]bool{dir: true, filepath.Dir(dir): true, filepath.Join(dir, "sub"): true, filepath.Join(logs, "link"): true, dir + "-other": false, logs: false} {
		uncleaned(folder, want)
	}
	if err := os.WriteFile(filepath.Join(logs, "unwritten.log"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	uncleaned(logs, false)
	tooltest.Link(t, "gone", filepath.Join(logs, "gone.log"))
	uncleaned(logs, false)
	if _, err := g.Clean(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	uncleaned(dir, false)

	g = start(Scope{})
	_ = g.Log().Close() // toolreg was killed
	uncleaned(dir, true)
	g = start(Scope{Lasting: true})
	uncleaned(dir, false)
	g.Forget()

	other := t.TempDir()
	g = start(Scope{Folders: []string{other}})
	uncleaned(other, true)
	g.Forget()
	if err := os.WriteFile(filepath.Join(logs, "damaged.log"), []byte("{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	uncleaned(dir, true)
}

// A log without a record is that of a toolreg that is about to start its program, or was
// killed before.
func TestUnwrittenLogsAreRemovedLater(t *testing.T) {
	dir, user := place(t, map[string]string{"a": ""})
	logs := t.TempDir()
	put(t, logs, map[string]string{"new.log": "", "newer.log": "{", "old.log": "", "older.log": "{"})
	for _, name := range []string{"old.log", "older.log"} {
		tooltest.Aged(t, filepath.Join(logs, name), 2*unwritten)
	}
	g, err := tooltest.Open(t, New(dir, user, logs)).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	g.Forget()
	for name, want := range map[string]bool{"new.log": true, "newer.log": true, "old.log": false, "older.log": false} {
		if _, err := os.Stat(filepath.Join(logs, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A program was started beside the first one that still runs, whatever other logs there are.
func TestProgramsThatRunAreBeside(t *testing.T) {
	dir, user := place(t, map[string]string{"a": ""})
	logs := t.TempDir()
	start := func() *Guards {
		t.Helper()
		g, err := tooltest.Open(t, New(dir, user, logs)).Guards(t.Context(), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Forget)
		return g
	}
	first := start()
	if first.Beside != (time.Time{}) {
		t.Errorf("beside the first one is one of %v", first.Beside)
	}
	put(t, logs, map[string]string{"z.log": "{"}) // of a program that is about to start
	nextTick()
	for range 2 {
		if next := start(); !next.Beside.Equal(first.Started) {
			t.Errorf("beside is one of %v, not of %v", next.Beside, first.Started)
		}
	}
}

// If two calls find the log of a killed toolreg, only the one that removes it cleans: what
// it leaves may be somebody else's.
func TestLogOfAnotherIsNotUsed(t *testing.T) {
	dir, user := place(t, map[string]string{"a": ""})
	logs := t.TempDir()
	g, err := tooltest.Open(t, New(dir, user, logs)).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Log().WriteString("/.envrc\x00"); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{".envrc": ""})
	other, err := os.Open(g.Log().Name())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	g.Forget()
	cleaned, _, err := g.tree.cleanAfter(t.Context(), fmt.Sprintf("/proc/self/fd/%d", other.Fd()))
	if diff := cmp.Diff(Cleaned{}, cleaned); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// On a file system that does not record when files were created, none is known to be old.
func TestBirthIsUnknown(t *testing.T) {
	for _, path := range []string{"/proc/version", "/proc/missing"} {
		if isBornBefore(path, time.Now()) {
			t.Errorf("%s is said to be old", path)
		}
	}
}

// A file that was created at the time of the program's start may be the program's: the clock of
// file systems is behind. One that is older came with its folder, if that folder is the program's.
func TestFilesOlderThanTheProgramCameWithAFolder(t *testing.T) {
	dir, user := place(t, map[string]string{"sub/.envrc": ""})
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	delete(g.Known, "sub/.envrc")
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, filepath.Join(dir, "sub/.envrc"), 0, unix.STATX_BTIME, &st); err != nil || st.Mask&unix.STATX_BTIME == 0 {
		t.Skip("the file system does not record when files were created")
	}
	born := time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
	for after, want := range map[time.Duration]bool{5 * time.Millisecond: false, time.Second: true} {
		g.Start = born.Add(after)
		if got := g.isCreatedByProgram("sub/.envrc", func(_, name string) bool { return name == sandbox.Renamed+"sub" }); got != want {
			t.Errorf("created %v before the program: %t", after, got)
		}
	}
}

// The folders besides the workspace are cleaned after a killed toolreg, too.
func TestOtherFoldersAreCleanedAfterAKilledOne(t *testing.T) {
	dir, user := place(t, map[string]string{"a": ""})
	other, logs := tooltest.Place(t, map[string]string{"sub/a": ""}), t.TempDir()
	killed, err := tooltest.Open(t, New(dir, user, logs)).Guards(t.Context(), Scope{Folders: []string{other}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := killed.Log().WriteString("/.envrc\x00"); err != nil {
		t.Fatal(err)
	}
	put(t, other, map[string]string{"sub/.envrc": ""})
	_ = killed.Log().Close()
	next, err := tooltest.Open(t, New(dir, user, logs)).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Forget()
	if diff := cmp.Diff(Cleaned{Removed: []string{filepath.Join(other, "sub/.envrc")}}, next.before); diff != "" {
		t.Error(diff)
	}
}
