//go:build unix

package pipe

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// CheckDescriptors checks that a few files can be opened. If none can, the
// runtime would crash with a dump at the first file.
func CheckDescriptors() error {
	const pairs = 3
	var open []int
	defer func() {
		for _, fd := range open {
			_ = syscall.Close(fd)
		}
	}()
	for range pairs {
		var fds [2]int
		if err := syscall.Pipe(fds[:]); err != nil {
			return fmt.Errorf("cannot open %d files: %w", 2*pairs, err)
		}
		open = append(open, fds[0], fds[1])
	}
	return nil
}

// readerGone reports whether a file is a pipe without a reader.
func readerGone(f *os.File) bool {
	gone := false
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	err = conn.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(fds, 0)
		gone = err == nil && n > 0 && fds[0].Revents&unix.POLLERR != 0
	})
	return err == nil && gone
}
