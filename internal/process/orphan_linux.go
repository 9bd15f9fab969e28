package process

import (
	"errors"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of what its children leave behind, whatever
// session they gave it, so that [EndOrphans] finds it. From then on no other
// process of the same user can read our environment and memory. An old kernel
// does neither.
func Adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// EndOrphans kills what our children left behind, but for what [GoesOn]. It is
// for the end of the process, when every child has been waited for.
func EndOrphans() {
	pause := 50 * time.Microsecond
	for range killRounds {
		found := false
		for _, pid := range children() {
			if mayGoOn(pid) {
				continue
			}
			found = true
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // its own children are ours then
		}
		if !found {
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, 10*time.Millisecond)
	}
}

// KillChildren kills every child of this process at once, each with all that it
// started in its group, but for what [GoesOn]. It is for the end of the process:
// nothing is reaped. The kernel says which children there are; where it does not,
// none is killed here.
func KillChildren() {
	for _, pid := range children() {
		if !mayGoOn(pid) {
			_ = unix.Kill(-pid, unix.SIGKILL) // ESRCH: it leads no group
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// mayGoOn reports whether a child is in our own session, as an editor is, or in
// one that goes on without us.
func mayGoOn(pid int) bool {
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

// children returns the ids of our children, adopted ones included. As long as we
// do not wait for them no other process gets their ids.
func children() []int {
	if errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil), unix.ECHILD) {
		return nil // the cheap answer of most runs
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

// reapGroup waits for the members of a group that came to us as orphans. The
// leader, our own child, must have been waited for.
func reapGroup(group int) {
	for {
		if pid, err := unix.Wait4(-group, nil, unix.WNOHANG, nil); err != nil || pid <= 0 {
			return
		}
	}
}
