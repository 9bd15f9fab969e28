package ui

import "golang.org/x/sys/unix"

// The requests that read and set the settings of a terminal.
const (
	getSettings = unix.TCGETS
	setSettings = unix.TCSETS
)

func discardInput(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
