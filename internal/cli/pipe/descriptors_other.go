//go:build !unix

package pipe

import "os"

// CheckDescriptors does nothing on systems without a small limit on open files.
func CheckDescriptors() error { return nil }

// readerGone cannot tell on this system; the next write fails.
func readerGone(*os.File) bool { return false }
