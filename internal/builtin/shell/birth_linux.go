package shell

import (
	"os"
	"strconv"
	"strings"
)

// procStat is the part of /proc/PID/stat that is used.
type procStat struct {
	dead  bool // it has ended, but may not have been reaped yet
	group int
	birth string // in clock ticks since boot
}

func statOf(pid string) (procStat, bool) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return procStat{}, false
	}
	// The program name, in parentheses, may contain any character.
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

// birthOf returns when a process was started, together with the id of the boot.
// ok is false if the process has ended.
func birthOf(pid int) (birth string, ok bool) {
	s, ok := statOf(strconv.Itoa(pid))
	if !ok || s.dead {
		return "", false
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		boot = nil // use the ticks alone
	}
	return strings.TrimSpace(string(boot)) + ":" + s.birth, true
}

// groupIsAlive reports whether a process of the group is still running. A
// signal to the group would also reach zombies, which in a container may never
// be reaped.
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
