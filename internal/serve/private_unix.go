//go:build unix

package serve

import (
	"fmt"
	"io/fs"
)

// private returns an error for a file that other users may read.
func private(info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("other users can read this file (mode %04o); run: chmod 600 FILE", mode)
	}
	return nil
}
