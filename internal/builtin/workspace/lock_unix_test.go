//go:build unix

package workspace

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A change waits ten seconds for another program, looking again ever more rarely.
func TestChangesWaitForTheLock(t *testing.T) {
	dir := t.TempDir()
	other, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX); err != nil {
		t.Skip(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if _, err := (changeLock{}).acquire(t.Context(), root); !errors.Is(err, errLocked) || time.Since(start) != lockWait {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}
