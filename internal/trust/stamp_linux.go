package trust

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// Stamp distinguishes a file from a replacement with the same size and times by its
// location and the time of its last change, which cannot be set, and returns that time.
func Stamp(info fs.FileInfo) (stamp string, changed time.Time) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", time.Time{}
	}
	return fmt.Sprint(st.Dev, st.Ino, st.Ctim.Nano()), time.Unix(st.Ctim.Unix())
}
