//go:build unix && !linux

package trust

import (
	"os"
	"strconv"
	"syscall"
)

// birth identifies a file by its inode number; "" if it does not exist.
func birth(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return strconv.FormatUint(uint64(st.Ino), 10)
}
