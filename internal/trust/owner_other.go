//go:build !unix

package trust

import "io/fs"

// openNonblock is 0 on systems without pipes in the file system.
const openNonblock = 0

// foreign cannot tell on systems with access control lists.
func foreign(fs.FileInfo) string { return "" }

// Device identifies a file system; 0 if unknown.
func Device(fs.FileInfo) uint64 { return 0 }

// Identity is not supported on this system.
func Identity(string) string { return "" }
