//go:build unix

package trust

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
		return fmt.Sprintf("it is owned by user %d", st.Uid)
	}
	sticky := info.IsDir() && info.Mode()&fs.ModeSticky != 0 // others cannot replace what is ours
	switch perm := info.Mode().Perm(); {
	case info.Mode()&fs.ModeSymlink != 0 || sticky:
	case perm&0o002 != 0:
		return "it is writable by everybody"
	case perm&0o020 != 0 && !private(st):
		return fmt.Sprintf("it is writable by group %d", st.Gid)
	}
	return ""
}

// private reports whether a file's group is that of its owner alone, as many
// systems give one to each user: it has the user's number. Root's has members.
func private(st *syscall.Stat_t) bool { return st.Uid != 0 && st.Gid == st.Uid }

// Identity tells a folder from another that takes its place: its number on the
// file system and, where that is known, the time of its birth, of the folder and
// of the .git in it. It outlives a restart; "" where there is no telling.
func Identity(dir string) string {
	return strings.TrimSuffix(birth(dir)+" "+birth(filepath.Join(dir, ".git")), " ")
}

// Device tells file systems apart; 0 where it cannot.
func Device(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev) // its type differs between systems
	}
	return 0
}
