//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watcher collects the names that a program uses. The kernel suspends each system call
// that could create a name until the watcher has read the name, and then runs it
// normally.
type watcher struct {
	listener *os.File
	stop     *os.File // closing it ends serve
	stopped  *os.File
	names    *Names
	done     chan struct{}
}

// watch takes over a seccomp listener and serves it until close.
func watch(listener *os.File, names *Names) (*watcher, error) {
	stopped, stop, err := os.Pipe()
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	w := &watcher{listener: listener, stop: stop, stopped: stopped, names: names, done: make(chan struct{})}
	go w.serve()
	return w, nil
}

// close ends the watching. Later system calls that create names fail.
func (w *watcher) close() {
	if w == nil {
		return
	}
	_ = w.stop.Close()
	<-w.done
	closeFiles([]*os.File{w.stopped, w.listener})
}

func (w *watcher) serve() {
	defer close(w.done)
	listener, stopped := int(w.listener.Fd()), int(w.stopped.Fd())
	// The program waits for the answer, so both can run on the same processor, which is
	// several times faster. Kernels before 6.6 do not support this.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	calls := creating()
	// The time of the log shows that the program still runs, until its guard can show that.
	const beat, beats = 20 * time.Millisecond, 20
	last, left := time.Now(), beats
	if w.names.Log == nil {
		left = 0
	}
	for {
		wait := -1
		if left > 0 {
			wait = int(beat.Milliseconds())
			if now := time.Now(); now.Sub(last) >= beat {
				w.names.beat()
				last = now
				left--
			}
		}
		fds := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}, {Fd: int32(stopped), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, wait); errors.Is(err, unix.EINTR) {
			continue
		} else if err == nil && n == 0 {
			continue
		} else if err != nil || fds[1].Revents != 0 || fds[0].Revents&unix.POLLIN == 0 {
			return // the program and all its descendants have exited
		}
		var n notification
		if err := control(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err != nil {
			continue // the thread was killed
		}
		if arg, ok := calls[uint32(n.call)]; ok {
			w.add(n, arg)
		}
		if n.call == unix.SYS_RENAMEAT2 && n.args[4]&unix.RENAME_EXCHANGE != 0 {
			w.add(n, 1)
		}
		answer := reply{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		_ = control(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer)) // likewise
	}
}

// add adds the last name of the path that an argument points to.
func (w *watcher) add(n notification, arg int) {
	if name := readName(int(n.pid), uintptr(n.args[arg])); name != "" {
		w.names.add(name)
	}
}

// notification is struct seccomp_notif, and reply is struct seccomp_notif_resp.
type notification struct {
	id         uint64
	pid, flags uint32
	call       int32
	arch       uint32
	pointer    uint64
	args       [6]uint64
}

type reply struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

func control(fd int, request uint, argument unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(argument))
		if errno == 0 {
			return nil
		}
		if errno != unix.EINTR {
			return errno
		}
	}
}

// creating returns the system calls that create names on every architecture, and the
// index of the argument with the path.
func creating() map[uint32]int {
	out := map[uint32]int{
		unix.SYS_OPENAT: 1, unix.SYS_MKNODAT: 1, unix.SYS_MKDIRAT: 1, unix.SYS_RENAMEAT: 3, unix.SYS_RENAMEAT2: 3, unix.SYS_LINKAT: 3, unix.SYS_SYMLINKAT: 2,
	}
	for call, arg := range creatingHere() {
		out[call] = arg
	}
	return out
}

// readName returns the last name of a path in the memory of a process, or "" if it cannot
// be read.
func readName(pid int, at uintptr) string {
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
	name := strings.TrimRight(string(path), "/")
	return name[strings.LastIndexByte(name, '/')+1:]
}
