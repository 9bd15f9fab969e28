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

// openNonblock keeps open from blocking on a pipe.
const openNonblock = syscall.O_NONBLOCK

// foreign returns why a user other than root or this one may have written the
// file; "" if none could.
func foreign(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "its owner is unknown"
	}
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Sprintf("it is owned by user %d", st.Uid)
	}
	sticky := info.IsDir() && info.Mode()&fs.ModeSticky != 0 // other users cannot replace our files
	switch perm := info.Mode().Perm(); {
	case info.Mode()&fs.ModeSymlink != 0 || sticky:
	case perm&0o002 != 0:
		return "it is writable by everybody"
	case perm&0o020 != 0 && !private(st):
		return fmt.Sprintf("it is writable by group %d", st.Gid)
	}
	return ""
}

// private reports whether a file's group has only its owner as a member, as on
// systems that give each user a group with the same number. Root's group may
// have other members.
func private(st *syscall.Stat_t) bool { return st.Uid != 0 && st.Gid == st.Uid }

// Identity identifies a folder, as opposed to another one that replaces it, by
// its number on the file system and, if known, its time of creation, and those
// of the .git in it. It is stable across restarts; "" if it is unknown.
func Identity(dir string) string {
	return strings.TrimSuffix(birth(dir)+" "+birth(filepath.Join(dir, ".git")), " ")
}

// Device identifies a file system; 0 if unknown.
func Device(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev) // its type differs between systems
	}
	return 0
}
