//go:build unix

package state

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	long        = 5 * time.Minute // longer than any test waits
	runs        = 20
	updatesEach = 20
	kills       = 80
	stormSize   = 64 << 10
)

// background is the context of the processes that act as other runs.
var background = context.Background()

func player(role, dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STATE_TEST_ROLE="+role, "STATE_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestConcurrentRunsLoseNoUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	var wg sync.WaitGroup
	for range runs {
		wg.Go(func() {
			if err := player("count", path).Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := open(t, path).Read("counter")
	if err != nil || string(got) != "400" {
		t.Errorf("counter = %q, %v", got, err)
	}
}

func TestConcurrentRunsDoNotMixLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	var wg sync.WaitGroup
	for range runs {
		wg.Go(func() {
			if err := player("append", path).Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := open(t, path).Read("log")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.FieldsFunc(string(got), func(r rune) bool { return r == '\n' })
	if len(lines) != runs*updatesEach {
		t.Errorf("%d lines of %d", len(lines), runs*updatesEach)
	}
	for _, l := range lines {
		if l != strings.Repeat(l[:1], 1000) {
			t.Fatalf("a mixed line: %.50s…", l)
		}
	}
}

// Runs are killed at any time. The file always holds one complete value, and the next run
// finds the lock free and no temporary files.
func TestKillStormLeavesOldOrNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	dir := open(t, path)
	torn := 0
	for i := range kills {
		cmd := player("storm", path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Wait until the run has written something, then a little longer each time, so
		// that kills hit every stage of an update.
		waitForChange(t, dir)
		for range i % 40 * 10 {
			_, _ = os.Stat(filepath.Join(path, "value"))
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		got, err := dir.Read("value")
		if err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		if len(got) != stormSize || !bytes.Equal(got, bytes.Repeat(got[:1], stormSize)) {
			t.Fatalf("kill %d left %d bytes: %.20q", i, len(got), got)
		}
		torn += countTemps(t, path)
	}
	if torn == 0 {
		t.Error("no kill hit an unfinished write: the test proves nothing")
	}
	if err := dir.Update(t.Context(), "value", flip); err != nil {
		t.Errorf("after the storm: %v", err)
	}
	if n := countTemps(t, path); n > 0 {
		t.Errorf("%d temporary files are left", n)
	}
}

// waitForChange returns once the file has been replaced.
func waitForChange(t *testing.T, dir *Dir) {
	t.Helper()
	before, _ := os.Stat(filepath.Join(dir.Path, "value"))
	deadline := time.Now().Add(long)
	for time.Now().Before(deadline) {
		now, err := os.Stat(filepath.Join(dir.Path, "value"))
		if err == nil && (before == nil || !os.SameFile(before, now)) {
			return
		}
	}
	t.Fatal("the run writes nothing")
}

func countTemps(t *testing.T, path string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(path, "*"+tempInfix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

func TestFullDiskKeepsOldValue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	dir := open(t, path)
	write(t, dir, "value", "old")
	if err := player("full", path).Run(); err != nil {
		t.Fatal(err)
	}
	if got, err := dir.Read("value"); string(got) != "old" || err != nil {
		t.Errorf("value = %q, %v", got, err)
	}
	if n := countTemps(t, path); n > 0 {
		t.Errorf("%d temporary files are left", n)
	}
	// The line that did not fit was truncated; the next ones are on lines of their own.
	if err := dir.Append(t.Context(), "log", []byte("next")); err != nil {
		t.Fatal(err)
	}
	got, err := dir.Read("log")
	if err != nil || !strings.HasSuffix(string(got), "xx\nagain\nnext\n") {
		t.Errorf("log ends with %q, %v", got[max(0, len(got)-20):], err)
	}
}
