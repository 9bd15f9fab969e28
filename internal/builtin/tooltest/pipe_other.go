//go:build !unix

package tooltest

import (
	"os"
	"testing"
)

// MakePipe creates a link to a device, because this system has no named pipes
// in folders.
func MakePipe(t testing.TB, path string) {
	t.Helper()
	if err := os.Symlink("NUL", path); err != nil {
		t.Fatal(err)
	}
}
