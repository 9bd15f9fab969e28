//go:build !linux

package trust

import (
	"io/fs"
	"time"
)

// Stamp returns "" on systems where nothing tells a file from a replacement with the same
// size and times.
func Stamp(fs.FileInfo) (stamp string, changed time.Time) { return "", time.Time{} }
