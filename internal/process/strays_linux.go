package process

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// unsureRounds limits how often processes that show no environment are
	// checked again: a process that is executing another program temporarily
	// has none.
	unsureRounds = 8
	// killRounds limits how often strays are searched for while they are being
	// killed, because one may start another meanwhile.
	killRounds = 60
)

// EndStrays kills the processes that were started after the process with the id
// first and whose initial environment has mark as the value of [MarkVariable].
// It does nothing if the system does not show environments.
func EndStrays(first int, mark string) {
	endMarked(mark, func() []int { return newerThan(first) })
}

func endMarked(mark string, candidates func() []int) {
	entry := []byte(MarkVariable + "=" + mark)
	pause := 50 * time.Microsecond
	looks := 0 // checks of processes without an environment
	for range killRounds {
		found, unsure := false, false
		for _, pid := range candidates() {
			switch environ := environOf(pid); {
			case len(environ) == 0:
				unsure = unsure || !isDead(pid)
			case hasEntry(environ, entry):
				found = true
				killMarked(pid, entry)
			}
		}
		if !found {
			if looks++; !unsure || looks > unsureRounds {
				return
			}
		}
		time.Sleep(pause)
		pause = min(2*pause, 10*time.Millisecond)
	}
}

// newerThan returns the processes that may have been started after first: ids
// increase until they wrap around.
func newerThan(first int) []int {
	last, newest := first, false
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		if fields := strings.Fields(string(data)); len(fields) == 5 {
			last, err = strconv.Atoi(fields[4])
			newest = err == nil && last >= first
		}
	}
	if newest && last == first {
		return nil
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var out []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err == nil && pid != os.Getpid() && (!newest || pid > first) {
			out = append(out, pid)
		}
	}
	return out
}

func hasEntry(environ, entry []byte) bool {
	for e := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(e, entry) {
			return true
		}
	}
	return false
}

// isDead reports whether a process has exited, or is not ours to kill.
func isDead(pid int) bool {
	var st unix.Stat_t
	err := unix.Stat("/proc/"+strconv.Itoa(pid), &st)
	return err != nil || int(st.Uid) != os.Geteuid() || statOf(pid).isDead()
}

// killMarked kills a process through a pidfd, so that a reused id is not hit.
func killMarked(pid int, entry []byte) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // gone, or a kernel before 5.3
	}
	defer unix.Close(fd)
	if hasEntry(environOf(pid), entry) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it fails if the process has exited
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		_ = unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WNOHANG, nil) // an orphan is our child
	}
}

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

// maxWatched limits how many descendants are examined.
const maxWatched = 64

// runTime returns how many nanoseconds of CPU time a process and its
// descendants have used, and whether one of their threads is running, runnable
// or waiting for a disk. If it cannot be read, the process is busy.
func runTime(pid int) (ran int64, busy bool) {
	pids := []int{pid}
	for i := 0; i < len(pids) && i < maxWatched; i++ {
		tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pids[i]) + "/task/*")
		if err != nil || len(tasks) == 0 {
			continue // it has exited
		}
		for _, task := range tasks {
			state := readStat(task).state
			times, err := os.ReadFile(task + "/schedstat")
			if err != nil || state == "R" || state == "D" {
				return 0, true
			}
			first, _, _ := bytes.Cut(times, []byte(" "))
			n, _ := strconv.ParseInt(string(first), 10, 64)
			ran += n
			pids = append(pids, childrenOf(task)...)
		}
	}
	return ran, len(pids) > maxWatched
}

// childrenOf returns the processes that a thread started.
func childrenOf(task string) []int {
	list, _ := os.ReadFile(task + "/children")
	var out []int
	for field := range bytes.FieldsSeq(list) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			out = append(out, pid)
		}
	}
	return out
}
