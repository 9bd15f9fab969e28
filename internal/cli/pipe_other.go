//go:build !unix

package cli

import "os"

// checkDescriptors does nothing on systems without a small limit on open files.
func checkDescriptors() error { return nil }

// readerGone cannot tell on this system; the next write fails.
func readerGone(*os.File) bool { return false }
