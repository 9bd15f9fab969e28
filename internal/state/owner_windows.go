package state

import (
	"io/fs"
)

// checkOwner is left to the access control lists of the user's profile.
func checkOwner(fs.FileInfo) error { return nil }

func openToOthers(fs.FileInfo) bool { return false }
