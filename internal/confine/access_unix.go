//go:build unix

package confine

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// canRead reports whether the user may read a file or folder outside of the sandbox.
func canRead(path string) bool { return unix.Access(path, unix.R_OK) == nil }

// canWrite reports whether the user may write a file or folder outside of the sandbox, or create it.
func canWrite(path string) bool {
	err := unix.Access(path, unix.W_OK)
	return err == nil || err == unix.ENOENT && unix.Access(filepath.Dir(path), unix.W_OK) == nil
}
