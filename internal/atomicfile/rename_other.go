//go:build !windows

package atomicfile

import "os"

// Rename renames a file in a folder.
func Rename(folder *os.Root, from, to string) error { return folder.Rename(from, to) }
