package process

import (
	"bytes"
	"os"
	"strconv"
)

// maxAncestors bounds the walk, which ends at the first process anyway.
const maxAncestors = 1000

// HasAncestor reports whether a process that this one descends from runs a
// program of the name, or one that is called as this one is. Only processes that
// are still there count: one whose parent has ended descends from whoever has
// taken it in.
func HasAncestor(name string) bool {
	own, parent := parentOf(os.Getpid())
	for range maxAncestors {
		if parent <= 1 {
			return false
		}
		var called string
		called, parent = parentOf(parent)
		if called == name || called == own {
			return true
		}
	}
	return true // nobody descends from so many
}

// parentOf returns what a process is called and the id of its parent; 0 for one
// that is gone.
func parentOf(pid int) (name string, parent int) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')') // a name may hold both
	if err != nil || open < 0 || end < open {
		return "", 0
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(string(fields[1]))
	return string(stat[open+1 : end]), parent
}
