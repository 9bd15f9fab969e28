package process

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// strayRounds bounds how often strays are looked for: one may start another
// while it is being ended.
const strayRounds = 5

// endStrays kills the processes that carry a mark in the environment they were
// started with. They came into being after the child of the id first.
func endStrays(first int, mark string) {
	entry := []byte(markVariable + "=" + mark)
	for range strayRounds {
		found := false
		for _, pid := range newerThan(first) {
			if carries(pid, entry) {
				found = true
				killMarked(pid, entry)
			}
		}
		if !found {
			return
		}
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

// carries reports whether a process was started with an entry in its
// environment. One that is not ours to look at was not.
func carries(pid int, entry []byte) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for e := range bytes.SplitSeq(data, []byte{0}) {
		if bytes.Equal(e, entry) {
			return true
		}
	}
	return false
}

// killMarked kills a process by a descriptor, so that no later one of the same
// id is hit.
func killMarked(pid int, entry []byte) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // gone, or a kernel before 5.3
	}
	defer unix.Close(fd)
	if carries(pid, entry) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // else it is gone
	}
}
