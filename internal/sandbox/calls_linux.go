//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// notification is struct seccomp_notif.
type notification struct {
	id         uint64
	pid, flags uint32
	call       int32
	arch       uint32
	pointer    uint64
	args       [6]uint64
}

// pathArgument says which argument of a system call is a path, and which one is the folder to which
// it is relative; -1 means the working folder.
type pathArgument struct{ folder, path int }

// watchedCall is a system call that is passed to the watcher. flags and mode are the indexes of
// these arguments; 0 means that the call has none.
type watchedCall struct {
	does        doing
	paths       []pathArgument
	flags, mode int
	always      int // flags that it implies
}

// doing is the action of a watched call.
type doing int

const (
	opening doing = iota // opens for writing, and creates a missing file
	makingFolder
	makingNode
	symlinking
	linking
	renaming
	removing
	changingMode
)

func (c watchedCall) flagsOf(n notification) int {
	if c.flags == 0 {
		return c.always
	}
	return c.always | int(int32(n.args[c.flags]))
}

// exclusive are the flags with which a call only opens a file that it creates.
const exclusive = unix.O_CREAT | unix.O_EXCL

// follows reports whether a call follows a link that is the last part of its path.
func (c watchedCall) follows(n notification) bool {
	switch flags := c.flagsOf(n); c.does {
	case opening:
		return flags&unix.O_NOFOLLOW == 0 && flags&exclusive != exclusive
	case changingMode:
		return flags&unix.AT_SYMLINK_NOFOLLOW == 0
	}
	return false
}

// readPath returns a path in the memory of a process, or "" if it cannot be read.
func readPath(pid int, at uintptr) string {
	buf := make([]byte, unix.PathMax)
	first := os.Getpagesize() - int(at)%os.Getpagesize()
	parts := []unix.RemoteIovec{{Base: at, Len: min(first, len(buf))}}
	if first < len(buf) { // the rest may be in an unmapped page
		parts = append(parts, unix.RemoteIovec{Base: at + uintptr(first), Len: len(buf) - first})
	}
	n, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}, parts, 0)
	if err != nil {
		return ""
	}
	path, _, _ := bytes.Cut(buf[:n], []byte{0})
	return string(path)
}
