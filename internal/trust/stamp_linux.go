package trust

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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

// birth identifies a file by its inode number and creation time; "" if it does not
// exist. The time is 0 on file systems that do not record it.
func birth(path string) string {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return ""
	}
	return fmt.Sprintf("%d@%d.%09d", st.Ino, st.Btime.Sec, st.Btime.Nsec)
}
