//go:build !unix

package builtin

import (
	"os"
	"testing"
)

// makePipe makes a link to a device: such systems keep no pipes in folders.
func makePipe(t testing.TB, path string) {
	t.Helper()
	if err := os.Symlink("NUL", path); err != nil {
		t.Fatal(err)
	}
}
