//go:build !linux

package process

import "os"

// FolderPath returns dir: open folders have no path on this system.
func FolderPath(_ *os.File, dir string) string { return dir }
