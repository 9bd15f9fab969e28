//go:build unix

package trust

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openNonblock keeps an open from waiting for the other end of a pipe.
const openNonblock = syscall.O_NONBLOCK

// foreign says why somebody else than root or this user may have written the
// file; "" if nobody else could.
func foreign(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "its owner is unknown"
	}
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Sprintf("it belongs to user %d", st.Uid)
	}
	sticky := info.IsDir() && info.Mode()&fs.ModeSticky != 0 // others cannot replace what is ours
	if info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSymlink == 0 && !sticky {
		return "everybody may write to it"
	}
	return ""
}

// Device tells file systems apart; 0 where it cannot.
func Device(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev) // its type differs between systems
	}
	return 0
}
