//go:build unix

package terminal

import "syscall"

// detached puts a child into a session of its own.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
