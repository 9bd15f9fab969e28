//go:build unix

package builtin

import (
	"io/fs"
	"os"
	"syscall"
)

// openNonblock keeps an open from waiting for the other end of a pipe.
const openNonblock = syscall.O_NONBLOCK

// keepOwner gives f the owner and group of old, where we may: root editing a
// person's file must not take it from them.
func keepOwner(f *os.File, old fs.FileInfo) {
	if st, ok := old.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}
