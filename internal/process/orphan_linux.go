package process

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of orphaned descendants, even those in
// other sessions, so that [EndOrphans] finds them. It also prevents other
// processes of the same user from reading toolreg's environment and memory, and
// gives this process the name by which [InsideTool] finds it, because the program may be
// called by another. Errors have no effect, such as on old kernels.
func Adopt() {
	_ = os.WriteFile("/proc/self/comm", []byte(programName), 0)
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// EndOrphans kills orphaned descendants except those excluded by [GoesOn]. Call
// it at the end of the process, when every child has been waited for.
func EndOrphans() {
	pause := 50 * time.Microsecond
	for range killRounds {
		found := false
		for _, pid := range children() {
			if maySurvive(pid) {
				continue
			}
			found = true
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // its children become ours
		}
		if !found {
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, 10*time.Millisecond)
	}
}

// KillChildren kills every child of this process at once, each with its group,
// except those excluded by [GoesOn]. Call it at the end of the process: it
// reaps nothing. If the kernel does not list the children, it kills none.
func KillChildren() {
	for _, pid := range children() {
		if !maySurvive(pid) {
			_ = unix.Kill(-pid, unix.SIGKILL) // ESRCH: it does not lead a group
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// maySurvive reports whether a child is in toolreg's own session, like an editor,
// or in one that is excluded by GoesOn.
func maySurvive(pid int) bool {
	session, err := unix.Getsid(pid)
	if err != nil {
		return true // it is gone
	}
	if own, err := unix.Getsid(0); err == nil && session == own {
		return true
	}
	_, ok := goingOn.Load(session)
	return ok
}

// children returns the ids of our children, including adopted ones. Their ids
// are not reused until we wait for them.
func children() []int {
	if childless() {
		return nil
	}
	tasks, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		return nil
	}
	var out []int
	for _, task := range tasks {
		out = append(out, childrenOf(task)...)
	}
	return out
}

// orphans returns the ids of the children that were adopted. The kernel makes
// them children of our main thread, which lives as long as the process, while
// those that we started belong to the threads that did.
func orphans() []int {
	if childless() {
		return nil
	}
	return childrenOf("/proc/self/task/" + strconv.Itoa(os.Getpid()))
}

// childless reports whether this process has no children, the usual case.
func childless() bool {
	return errors.Is(unix.Waitid(unix.P_ALL, 0, nil,
		unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil), unix.ECHILD)
}

// endMarkedOrphans is EndStrays for the orphans that we adopted.
func endMarkedOrphans(mark string) { endMarked(mark, orphans) }
