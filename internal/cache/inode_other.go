//go:build !linux

package cache

import "io/fs"

// inode returns "" on systems without inode numbers; size and times must
// suffice.
func inode(fs.FileInfo) string { return "" }
