//go:build !unix

package tooltest

import (
	"os"
	"testing"
)

// MakePipe makes a link to a device: such systems keep no pipes in folders.
func MakePipe(t testing.TB, path string) {
	t.Helper()
	if err := os.Symlink("NUL", path); err != nil {
		t.Fatal(err)
	}
}
