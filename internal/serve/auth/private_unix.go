//go:build unix

package auth

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkPrivate returns an error for a file that belongs to another user than this one and root, or
// that other users may read.
func checkPrivate(info fs.FileInfo) error {
	owner := os.Geteuid()
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = int(stat.Uid)
	}
	return checkPrivateFor(info.Mode().Perm(), owner, os.Geteuid())
}

// checkPrivateFor is checkPrivate for a given user. A file of root may be readable by its
// group, because systemd and Kubernetes provide secrets as files of root that a service
// reads through its group.
func checkPrivateFor(mode fs.FileMode, owner, user int) error {
	if owner != user && owner != 0 {
		return fmt.Errorf("it is owned by user %d; its owner must be user %d", owner, user)
	}
	others := fs.FileMode(0o077)
	if owner == 0 && user != 0 {
		others = 0o037
	}
	if mode&others != 0 {
		return fmt.Errorf("other users can read or change this file (mode %04o); its mode must be 0600", mode)
	}
	return nil
}
