//go:build unix

package process

import (
	"cmp"
	"errors"
	"os"
	osexec "os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// group is a session and its first process group, identified by the child's
// pid.
type group struct{}

// interpret does nothing: the kernel starts scripts.
func interpret(*osexec.Cmd) error { return nil }

// prepare gives the child its own session, so that it has no controlling
// terminal from which it could read answers or be stopped, and so that one id
// identifies all processes that it starts.
func (group) prepare(cmd *osexec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	endWithParent(cmd.SysProcAttr)
	sealDescriptors()
}

func (group) terminate(pid int) { _ = unix.Kill(-pid, unix.SIGTERM) } // ESRCH: the group is gone
func (group) kill(pid int)      { _ = unix.Kill(-pid, unix.SIGKILL) }

// awaitGone waits until the kernel has removed the killed members, which takes
// well under a millisecond each on an idle machine. The wait is limited,
// because members that are never reaped (in a container without an init) never
// leave the group, and some systems do not distinguish zombies.
func (group) awaitGone(pid int) {
	for wait := 50 * time.Microsecond; wait < 100*time.Millisecond; wait *= 2 {
		reapGroup(pid)
		if errors.Is(unix.Kill(-pid, 0), unix.ESRCH) || wait > time.Millisecond && !GroupIsAlive(pid) {
			return
		}
		time.Sleep(wait)
	}
}

func (group) adopt(*os.Process) {}
func (group) close()            {}

// exitOf returns the exit code and signal of a reaped child.
func exitOf(cmd *osexec.Cmd) (code int, signal string) {
	if cmd.ProcessState == nil { // it was reaped elsewhere
		return -1, ""
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		return cmd.ProcessState.ExitCode(), ""
	}
	return describeStatus(int(status))
}

// describeStatus returns the exit code and the signal of a wait status.
func describeStatus(wait int) (code int, signal string) {
	status := syscall.WaitStatus(wait)
	if !status.Signaled() {
		return status.ExitStatus(), ""
	}
	name := cmp.Or(unix.SignalName(status.Signal()), "SIG"+strconv.Itoa(int(status.Signal())))
	return -1, name
}

func isFormatError(err error) bool { return errors.Is(err, unix.ENOEXEC) }

// detach makes a program outlive toolreg.
func detach(cmd *osexec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	sealDescriptors()
}

// CloseStreams replaces stdin and stdout by /dev/null, for a program that [Detach] has
// started.
func CloseStreams() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for fd := range 2 {
		if err := dup(int(null.Fd()), fd); err != nil {
			return err
		}
	}
	return nil
}
