package process

import (
	osexec "os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

func detach(cmd *osexec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}
}
