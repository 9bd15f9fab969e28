package shell

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// birthOf returns when a process was started. ok is false if it has ended, even
// if it has not been reaped yet.
func birthOf(pid int) (birth string, ok bool) {
	const zombie = 5 // SZOMB of sys/proc.h
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || info.Proc.P_stat == zombie {
		return "", false
	}
	at := info.Proc.P_starttime
	return fmt.Sprintf("%d.%06d", at.Sec, at.Usec), true
}
