//go:build !linux

package process

import "os"

// FolderPath is dir: open folders have no path here.
func FolderPath(_ *os.File, dir string) string { return dir }
