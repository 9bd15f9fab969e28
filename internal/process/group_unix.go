//go:build unix

package process

import (
	"errors"
	osexec "os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// group is a session with its first process group, named by the child's pid.
type group struct{}

// prepare gives the child a session of its own: no controlling terminal to read
// answers from or to be stopped by, and one id to signal all that it starts.
func (group) prepare(cmd *osexec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	endWithParent(cmd.SysProcAttr)
	sealDescriptors()
}

func (group) terminate(pid int) { _ = unix.Kill(-pid, unix.SIGTERM) } // ESRCH: all gone
func (group) kill(pid int)      { _ = unix.Kill(-pid, unix.SIGKILL) }

// awaitGone waits until the kernel has taken down the killed members, which
// lasts well under a millisecond each on an idle machine. The wait is bounded:
// members that nobody reaps (a container without an init) never leave the group,
// and where zombies cannot be told from the living it has to end anyway.
func (group) awaitGone(pid int) {
	for wait := 50 * time.Microsecond; wait < 100*time.Millisecond; wait *= 2 {
		reapGroup(pid)
		if errors.Is(unix.Kill(-pid, 0), unix.ESRCH) || wait > time.Millisecond && allDead(pid) {
			return
		}
		time.Sleep(wait)
	}
}

func (group) close() {}

// exitOf tells the exit code and signal of a reaped child.
func exitOf(cmd *osexec.Cmd) (code int, signal string) {
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return cmd.ProcessState.ExitCode(), ""
	}
	name := unix.SignalName(status.Signal())
	if name == "" {
		name = "SIG" + strconv.Itoa(int(status.Signal()))
	}
	return -1, name
}

func isFormatError(err error) bool { return errors.Is(err, unix.ENOEXEC) }
