package shell

import (
	"os"
	"strconv"
	"strings"
)

// procStat is what /proc says of a process.
type procStat struct {
	dead  bool // it has ended, though nobody may have waited for it yet
	group int
	birth string // in ticks since the start of the system
}

func statOf(pid string) (procStat, bool) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return procStat{}, false
	}
	// The name of the program, in brackets, may contain anything.
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const state, group, start = 0, 2, 19
	if len(fields) <= start {
		return procStat{}, false
	}
	s := procStat{dead: fields[state] == "Z" || fields[state] == "X", birth: fields[start]}
	s.group, err = strconv.Atoi(fields[group])
	return s, err == nil
}

// birthOf returns when a process was started, and since which boot that is
// counted. ok is false if it has ended.
func birthOf(pid int) (birth string, ok bool) {
	s, ok := statOf(strconv.Itoa(pid))
	if !ok || s.dead {
		return "", false
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		boot = nil // the ticks alone must do
	}
	return strings.TrimSpace(string(boot)) + ":" + s.birth, true
}

// groupIsAlive reports whether a process of the group is still running. The
// system also counts ended processes until somebody waits for them, which in a
// container may be never.
func groupIsAlive(group int) bool {
	dir, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		if s, ok := statOf(name); ok && s.group == group && !s.dead {
			return true
		}
	}
	return false
}
