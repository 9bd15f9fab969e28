package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// maxWatched bounds the processes that are looked at below one.
const maxWatched = 64

// runTime returns for how many nanoseconds a process and what descends from it
// have been on a processor, and whether one of their threads is on one, waits
// for one, or waits for a disk. Where that cannot be read they are busy.
func runTime(pid int) (ran int64, busy bool) {
	pids := []int{pid}
	for i := 0; i < len(pids) && i < maxWatched; i++ {
		tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pids[i]) + "/task/*")
		if err != nil || len(tasks) == 0 {
			continue // it has ended
		}
		for _, task := range tasks {
			stat, _ := os.ReadFile(task + "/stat")
			state, _ := stateAndGroup(stat)
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

// childrenOf returns the processes that a thread has started.
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
