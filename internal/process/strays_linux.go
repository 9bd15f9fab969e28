package process

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// strayRounds bounds how often strays are looked for: one may start another
// while it is being ended, and one that is just becoming another program shows
// no environment.
const strayRounds = 8

// endStrays kills the processes that carry a mark in the environment they were
// started with. They came into being after the child of the id first.
func endStrays(first int, mark string) {
	entry := []byte(markVariable + "=" + mark)
	pause := 50 * time.Microsecond
	for range strayRounds {
		again := false
		for _, pid := range newerThan(first) {
			switch environ := environOf(pid); {
			case len(environ) == 0:
				again = again || !isDead(pid)
			case holds(environ, entry):
				again = true
				killMarked(pid, entry)
			}
		}
		if !again {
			return
		}
		time.Sleep(pause)
		pause *= 2
	}
}

// newerThan returns the processes that may have been started after one: ids
// grow until they begin anew.
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

// environOf returns the environment that a process was started with, nothing
// for one that is not ours to look at.
func environOf(pid int) []byte {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	return data
}

func holds(environ, entry []byte) bool {
	for e := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(e, entry) {
			return true
		}
	}
	return false
}

// isDead reports whether a process has ended, or is not ours to end.
func isDead(pid int) bool {
	name := "/proc/" + strconv.Itoa(pid)
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil || int(st.Uid) != os.Geteuid() {
		return true
	}
	stat, err := os.ReadFile(name + "/stat")
	if err != nil {
		return true
	}
	state, _ := stateAndGroup(stat)
	return state == "Z" || state == "X"
}

// killMarked kills a process by a descriptor, so that no later one of the same
// id is hit.
func killMarked(pid int, entry []byte) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // gone, or a kernel before 5.3
	}
	defer unix.Close(fd)
	if holds(environOf(pid), entry) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // else it is gone
	}
}
