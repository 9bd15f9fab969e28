//go:build !unix

package atomicfile

import (
	"io/fs"
	"os"
)

// copyOwner does nothing: a new file inherits its owner from its folder.
func copyOwner(*os.File, fs.FileInfo) bool { return true }

// isUnsupported reports that a file system cannot sync a folder.
func isUnsupported(error) bool { return true }
