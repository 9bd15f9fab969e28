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

// foreignWriter returns the reason why a user other than root or the current one could
// have written the file; "" if no other user could.
func foreignWriter(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "its owner is unknown"
	}
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Sprintf("it is owned by user %d", st.Uid)
	}
	sticky := info.IsDir() && info.Mode()&fs.ModeSticky != 0 // others cannot replace our files in it
	switch perm := info.Mode().Perm(); {
	case info.Mode()&fs.ModeSymlink != 0 || sticky:
	case perm&0o002 != 0:
		return "it is writable by everybody"
	case perm&0o020 != 0 && !hasOwnGroup(st):
		return fmt.Sprintf("it is writable by group %d", st.Gid)
	}
	return ""
}

// hasOwnGroup reports whether the group of a file has only the owner as a member, as
// on systems that give each user a group with the same number. Root's group may
// have other members.
func hasOwnGroup(st *syscall.Stat_t) bool { return st.Uid != 0 && st.Gid == st.Uid }

// Identity identifies a folder, as opposed to another folder at the same path, by
// its inode number and, if known, its creation time, and by those of the .git in
// it. It does not change when the system restarts. It is "" if the folder cannot
// be identified.
func Identity(dir string) string {
	return strings.TrimSuffix(birth(dir)+" "+birth(filepath.Join(dir, ".git")), " ")
}

// Device identifies the file system of a file; 0 if it is unknown.
func Device(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev) // its type differs between systems
	}
	return 0
}
