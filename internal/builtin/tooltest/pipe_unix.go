//go:build unix

package tooltest

import (
	"syscall"
	"testing"
)

// MakePipe creates a named pipe without a writer, on which a plain open would
// block forever.
func MakePipe(t testing.TB, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
