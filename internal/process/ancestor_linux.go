package process

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxAncestors limits the walk up the process tree.
const maxAncestors = 1000

// hasAncestor reports whether an ancestor of this process runs a program of
// this name, or has the same name as this process. Only living processes are
// seen: a process whose parent has exited descends from its new parent.
func hasAncestor(name string) bool {
	own := statOf(os.Getpid())
	parent := own.parent
	for range maxAncestors {
		if parent == 0 { // the first process, which may be toolreg, has none
			return false
		}
		s := statOf(parent)
		if s.name == name || s.name == own.name {
			return true
		}
		parent = s.parent
	}
	return true // too many ancestors to be genuine
}

// ancestorVariable returns the value of a variable in the initial environment of the
// nearest ancestor that has it. Environments that cannot be read have none.
func ancestorVariable(name string) (value string, ok bool) {
	parent := os.Getppid()
	for range maxAncestors {
		if parent == 0 {
			break
		}
		for entry := range bytes.SplitSeq(environOf(parent), []byte{0}) {
			if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
				return string(value), true
			}
		}
		parent = statOf(parent).parent
	}
	return "", false
}

// parentHasSameName reports whether the parent of this process has the same name as this
// process.
func parentHasSameName() bool {
	own := statOf(os.Getpid())
	return statOf(own.parent).name == own.name
}

// ParentFeedsStdin reports whether the parent of this process runs the same
// program and holds the other end of the pipe that is stdin. A program in between
// cannot claim that, even if it replaced itself by this process.
func ParentFeedsStdin() bool {
	parent := "/proc/" + strconv.Itoa(os.Getppid())
	own, err := os.Stat("/proc/self/exe")
	if err != nil {
		return false
	}
	if its, err := os.Stat(parent + "/exe"); err != nil || !os.SameFile(own, its) {
		return false
	}
	pipe, err := os.Readlink("/proc/self/fd/0")
	if err != nil || !strings.HasPrefix(pipe, "pipe:") {
		return false
	}
	open, err := os.ReadDir(parent + "/fd")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(open, func(fd os.DirEntry) bool {
		link, err := os.Readlink(parent + "/fd/" + fd.Name())
		return err == nil && link == pipe
	})
}

// stat is what /proc/PID/stat says of a process; the zero value if the process is gone.
type stat struct {
	name, state   string
	parent, group int
	start         string // in clock ticks since boot
}

// isDead reports whether the process has exited.
func (s stat) isDead() bool { return s.state == "" || s.state == "Z" || s.state == "X" }

func statOf(pid int) stat { return readStat("/proc/" + strconv.Itoa(pid)) }

// readStat reads the file stat in a folder of a process or of a thread.
func readStat(folder string) stat {
	data, err := readProc(folder + "/stat")
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')') // a name may contain both
	if err != nil || open < 0 || end < open {
		return stat{}
	}
	fields := strings.Fields(string(data[end+1:]))
	if len(fields) < 20 {
		return stat{}
	}
	parent, _ := strconv.Atoi(fields[1])
	group, _ := strconv.Atoi(fields[2])
	return stat{string(data[open+1 : end]), fields[0], parent, group, fields[19]}
}

// Started returns when a process was started, in clock ticks since boot; "" if it has ended, even if it has
// not been reaped yet.
func Started(pid int) string {
	s := statOf(pid)
	if s.isDead() {
		return ""
	}
	return s.start
}

// environOf returns the initial environment of a process; nil if it cannot be
// read.
func environOf(pid int) []byte {
	data, err := readProc("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	return data
}

// readProc reads a file of /proc. Package os would ask four times whether reading can be
// waited for, and every run reads two such files of each ancestor.
func readProc(name string) ([]byte, error) {
	var fd int
	err := uninterrupted(func() (err error) {
		fd, err = unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	data := make([]byte, 0, 4096)
	for {
		data = slices.Grow(data, 1024)
		var n int
		err := uninterrupted(func() (err error) {
			n, err = unix.Read(fd, data[len(data):cap(data)])
			return err
		})
		if err != nil || n == 0 {
			return data, err
		}
		data = data[:len(data)+n]
	}
}

// uninterrupted repeats a system call while signals interrupt it.
func uninterrupted(call func() error) (err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		err = call()
	}
	return err
}
