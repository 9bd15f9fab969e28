package process

import (
	"errors"
	"math"
	"os"
	osexec "os/exec"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// endWithParent makes the kernel kill the child when the thread that started it
// ends, and therefore when toolreg ends in any way.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// sealDescriptors keeps descriptors that toolreg inherited from reaching a
// child; those that it opened are close-on-exec already. Old kernels do not
// support it.
func sealDescriptors() {
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
}

// awaitExit blocks until the child has exited and does not reap it: as long as
// it is a zombie, its pid, which identifies the group, cannot be reused.
func awaitExit(cmd *osexec.Cmd) {
	pid := cmd.Process.Pid
	if !polledExit(pid) {
		isZombie(pid, 0)
	}
}

// polledExit waits without blocking a thread. It returns false if the system
// does not support that.
func polledExit(pid int) bool {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	conn, err := f.SyscallConn()
	return err == nil && conn.Read(func(uintptr) bool { return isZombie(pid, unix.WNOHANG) }) == nil
}

// isZombie reports whether a child has exited; without WNOHANG it waits for that.
func isZombie(pid, options int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|options, nil)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || info.Signo != 0
		}
	}
}

// GroupIsAlive reports whether a process of the group is still running. A signal to the group would also
// reach zombies, which in a container may never be reaped.
func GroupIsAlive(group int) bool {
	entries, err := os.ReadDir("/proc")
	return err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			return false
		}
		s := statOf(pid)
		return s.group == group && !s.isDead()
	})
}

// FolderPath returns the path by which a starting child can reach an open
// folder; dir if it is nil. The path is valid in the child until the program
// runs.
func FolderPath(open *os.File, dir string) string {
	if open == nil {
		return dir
	}
	return "/proc/self/fd/" + strconv.Itoa(int(open.Fd()))
}

func dup(from, to int) error { return unix.Dup3(from, to, 0) }

// reapGroup reaps the members of a group that became our children as orphans.
// The leader, our own child, must have been reaped already.
func reapGroup(group int) {
	for {
		if pid, err := unix.Wait4(-group, nil, unix.WNOHANG, nil); err != nil || pid <= 0 {
			return
		}
	}
}
