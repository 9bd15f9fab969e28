//go:build unix

package builtin

import (
	"syscall"
	"testing"
)

// makePipe makes a named pipe that nobody writes to: opening it the usual way
// would wait for ever.
func makePipe(t testing.TB, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
