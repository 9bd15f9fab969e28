//go:build unix && !linux && !solaris && !illumos && !aix

package terminal

import "golang.org/x/sys/unix"

// fread is FREAD of sys/fcntl.h: the input queue.
const fread = 1

// discardInput throws away what was typed and not yet read.
func discardInput(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, fread) }
