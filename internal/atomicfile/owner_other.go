//go:build !unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
)

// copyOwner does nothing: a new file inherits its owner from its folder.
func copyOwner(*os.File, fs.FileInfo) bool { return true }

// isUnsupported reports that a file system cannot sync a folder.
func isUnsupported(error) bool { return true }

// open refuses to write in place, because it cannot be determined here whether the file has another
// name.
func (*File) open() (*os.File, error) { return nil, errors.ErrUnsupported }

func isRefused(error) bool { return false }
