//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// copyOwner gives f the owner and group of another file as far as permitted, so
// that a file edited by root still belongs to its owner. It reports whether f has
// the group.
func copyOwner(f *os.File, like fs.FileInfo) bool {
	want, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	if f.Chown(int(want.Uid), int(want.Gid)) == nil || f.Chown(-1, int(want.Gid)) == nil {
		return true
	}
	info, err := f.Stat() // some file systems allow no change, not even to the same group
	if err != nil {
		return false
	}
	have, ok := info.Sys().(*syscall.Stat_t)
	return ok && have.Gid == want.Gid
}

// isUnsupported reports that a file system cannot sync a folder.
func isUnsupported(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported)
}
