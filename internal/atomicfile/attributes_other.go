//go:build !linux

package atomicfile

import "os"

// copyAttributes does nothing: only the permission bits are copied.
func copyAttributes(*os.File, *os.Root, string) error { return nil }
