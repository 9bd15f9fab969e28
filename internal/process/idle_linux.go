package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

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
