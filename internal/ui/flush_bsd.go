//go:build unix && !linux && !solaris && !illumos && !aix

package ui

import "golang.org/x/sys/unix"

// The requests that read and set the settings of a terminal.
const (
	getSettings = unix.TIOCGETA
	setSettings = unix.TIOCSETA
)

// fread is FREAD of sys/fcntl.h: the input queue.
const fread = 1

func discardInput(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, fread) }
