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

// open opens the file itself, to write it in place. The file must be a regular one and have no other
// name, because that may be a name outside of the folder.
func (f *File) open() (*os.File, error) {
	target, err := f.folder.OpenFile(f.name, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := target.Stat()
	if err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && st.Nlink == 1 {
			return target, nil
		}
		err = errors.New("it is not a regular file with one name")
	}
	return nil, errors.Join(err, target.Close())
}

// isRefused reports that a folder takes no new file, or that a file cannot be replaced: it is a
// mount point, as single files in a container are, or another user's in a folder such as /tmp.
func isRefused(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EBUSY)
}
