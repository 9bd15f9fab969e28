//go:build unix

package guards

import (
	"fmt"
	"io/fs"
	"syscall"
)

// fileID identifies a file, even after it was renamed and from another process.
func fileID(info fs.FileInfo) string {
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprint(st.Dev, ":", st.Ino)
}

func linkCount(info fs.FileInfo) uint64 { return uint64(info.Sys().(*syscall.Stat_t).Nlink) }
