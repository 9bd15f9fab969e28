package trust

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// birth identifies a file by its inode number and creation time; "" if it does not
// exist. The time is 0 on file systems that do not record it.
func birth(path string) string {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return ""
	}
	return fmt.Sprintf("%d@%d.%09d", st.Ino, st.Btime.Sec, st.Btime.Nsec)
}
