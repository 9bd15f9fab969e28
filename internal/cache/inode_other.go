//go:build !linux

package cache

import "io/fs"

// inode returns "" on systems without inode numbers; keys use only size and times.
func inode(fs.FileInfo) string { return "" }
