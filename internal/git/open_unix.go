//go:build unix

package git

import "syscall"

// OpenNonblock keeps an open from waiting for the other end of a named pipe.
const OpenNonblock = syscall.O_NONBLOCK
