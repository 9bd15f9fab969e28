package ui

import "golang.org/x/sys/unix"

// discardInput discards unread input.
func discardInput(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
