//go:build unix

package state

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ours tells whether a file belongs to the user who runs us.
func ours(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("has no owner")
	}
	if uid := os.Geteuid(); int(st.Uid) != uid {
		return fmt.Errorf("belongs to user %d, not to user %d who runs toolreg", st.Uid, uid)
	}
	return nil
}

// loose reports whether others may read or write.
func loose(info fs.FileInfo) bool { return info.Mode().Perm() != 0o700 }
