//go:build unix

package cli

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkDescriptors checks that a few files can be opened. If none can, the
// runtime would crash with a dump at the first file.
func checkDescriptors() error {
	const files = 6
	var open []int
	defer func() {
		for _, fd := range open {
			_ = syscall.Close(fd)
		}
	}()
	for range files {
		fd, err := syscall.Dup(0) // the runtime has opened it if it was closed
		if err != nil {
			return fmt.Errorf("cannot open %d files: %w", files, err)
		}
		open = append(open, fd)
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
