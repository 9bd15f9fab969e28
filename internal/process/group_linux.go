package process

import (
	"bytes"
	"errors"
	"math"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// endWithParent has the kernel kill the child when the thread that starts it
// ends, that is with toolreg, however toolreg ends.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// sealDescriptors keeps what we inherited ourselves from reaching a child:
// whatever we opened is marked so already. An old kernel cannot do it.
func sealDescriptors() {
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
}

func (group) adopt(*os.Process) {}

// awaitExit blocks until the child has ended and leaves it unreaped: as long as
// it is a zombie its pid, which names the group, cannot be given to another.
func awaitExit(cmd *osexec.Cmd) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// allDead reports whether the members of a group are zombies, all of them: dead,
// and waiting for someone to notice.
func allDead(group int) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // gone meanwhile
		}
		if state, pgrp := stateAndGroup(stat); pgrp == group && state != "Z" && state != "X" {
			return false
		}
	}
	return true
}

// stateAndGroup reads two fields of /proc/PID/stat. The name before them may
// hold anything, so they are counted from its closing parenthesis.
func stateAndGroup(stat []byte) (state string, group int) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 3 {
		return "", 0
	}
	group, _ = strconv.Atoi(fields[2])
	return fields[0], group
}
