//go:build unix

package state

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkOwner verifies that a file belongs to the current user.
func checkOwner(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("has no owner")
	}
	if uid := os.Geteuid(); int(st.Uid) != uid {
		return fmt.Errorf("is owned by user %d, not by user %d who runs toolreg", st.Uid, uid)
	}
	return nil
}

// openToOthers reports whether others may read or write.
func openToOthers(info fs.FileInfo) bool { return info.Mode().Perm() != 0o700 }

// isRoots reports whether only root can write to a folder.
func isRoots(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Sys().(*syscall.Stat_t).Uid == 0 && info.Mode().Perm()&0o022 == 0
}
