//go:build unix

package process

import (
	osexec "os/exec"
	"syscall"
)

func detach(cmd *osexec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	sealDescriptors()
}
