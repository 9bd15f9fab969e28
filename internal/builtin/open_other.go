//go:build !unix

package builtin

import (
	"io/fs"
	"os"
)

// openNonblock is 0 where pipes have no place in the file system.
const openNonblock = 0

// keepOwner does nothing: a new file inherits its owner from its folder.
func keepOwner(*os.File, fs.FileInfo) {}
