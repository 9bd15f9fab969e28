package process

import (
	"bytes"
	"os"
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
