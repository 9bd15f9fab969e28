//go:build unix

package tooltest

import (
	"syscall"
	"testing"
)

// MakePipe makes a named pipe that nobody writes to: opening it the usual way
// would wait for ever.
func MakePipe(t testing.TB, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
