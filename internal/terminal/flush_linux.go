package terminal

import "golang.org/x/sys/unix"

// discardInput throws away what was typed and not yet read.
func discardInput(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
