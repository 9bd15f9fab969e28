//go:build unix && !linux && !solaris && !illumos && !aix

package ui

import "golang.org/x/sys/unix"

// fread is FREAD of sys/fcntl.h: the input queue.
const fread = 1

// discardInput discards unread input.
func discardInput(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, fread) }
