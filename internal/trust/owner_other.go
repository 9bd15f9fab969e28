//go:build !unix

package trust

import "io/fs"

// foreignWriter returns "", because owners are not checked on systems with access control lists.
func foreignWriter(fs.FileInfo) string { return "" }

// Device returns 0, because file systems cannot be identified here.
func Device(fs.FileInfo) uint64 { return 0 }

// Identity returns "", because folders cannot be identified on this system.
func Identity(string) string { return "" }
