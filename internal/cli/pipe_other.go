//go:build !unix

package cli

import "os"

// checkDescriptors does nothing on systems without a small limit on open files.
func checkDescriptors() error { return nil }

// readerGone always returns false, because this system cannot tell before the next write.
func readerGone(*os.File) bool { return false }
