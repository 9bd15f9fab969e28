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
	own, parent := parentOf(os.Getpid())
	for range maxAncestors {
		if parent == 0 { // the first process, which may be toolreg, has none
			return false
		}
		var called string
		called, parent = parentOf(parent)
		if called == name || called == own {
			return true
		}
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
		_, parent = parentOf(parent)
	}
	return "", false
}

// parentHasSameName reports whether the parent of this process has the same name as this
// process.
func parentHasSameName() bool {
	own, parent := parentOf(os.Getpid())
	called, _ := parentOf(parent)
	return called == own
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

// parentOf returns the name of a process and the id of its parent; 0 if the
// process is gone.
func parentOf(pid int) (name string, parent int) {
	stat, err := readProc("/proc/" + strconv.Itoa(pid) + "/stat")
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')') // a name may contain both
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
