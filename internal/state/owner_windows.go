package state

import (
	"io/fs"
)

// checkOwner does nothing: access control lists of the user's profile protect
// the files.
func checkOwner(fs.FileInfo) error { return nil }

func openToOthers(fs.FileInfo) bool { return false }

func isRoots(string) bool { return false }
