package state

import (
	"io/fs"
)

// ours is left to the access control lists of the user's profile.
func ours(fs.FileInfo) error { return nil }

func loose(fs.FileInfo) bool { return false }
