package terminal

import "syscall"

// detached starts a child without our console.
func detached() *syscall.SysProcAttr {
	const detachedProcess = 0x8
	return &syscall.SysProcAttr{CreationFlags: detachedProcess}
}
