//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watcher collects the names that a program uses. The kernel suspends each system call
// that could create a name, or opens a file for writing, until the watcher has read the
// name, and then runs it normally.
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
		for _, arg := range calls[uint32(n.call)] {
			w.add(n, arg)
		}
		answer := reply{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		_ = control(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer)) // likewise
	}
}

// add adds the last name of the path that an argument points to.
func (w *watcher) add(n notification, arg pathArgument) {
	process := "/proc/" + strconv.Itoa(int(n.pid))
	folder, path := process+"/cwd", readPath(int(n.pid), uintptr(n.args[arg.path]))
	if fd := int(int32(n.args[max(arg.folder, 0)])); arg.folder >= 0 && fd != unix.AT_FDCWD {
		folder = process + "/fd/" + strconv.Itoa(fd)
	}
	if fd, ok := descriptor(path); ok {
		path, _ = os.Readlink(process + "/fd/" + fd)
	}
	if strings.HasPrefix(path, "/") {
		folder = process + "/root"
	}
	path = strings.TrimRight(path, "/")
	at := strings.LastIndexByte(path, '/') + 1
	if name := path[at:]; name != "" && name != "." && name != ".." {
		id := folderID(folder, path[:at])
		w.names.add(id, name)
		if arg.renames {
			w.names.add(id, Renamed+name)
		}
	}
}

// descriptor returns the number of the descriptor through which a path leads to a file.
func descriptor(path string) (fd string, ok bool) {
	for _, folder := range []string{"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"} {
		if fd, ok = strings.CutPrefix(path, folder); ok {
			_, err := strconv.Atoi(fd)
			return fd, err == nil
		}
	}
	return "", false
}

// folderID returns the identity of a folder as in [Names.Has], by a path relative to a link of
// /proc, which is the root of absolute paths. If another link is on the way, it returns "":
// the program could change it before the kernel acts on the name.
func folderID(base, path string) string {
	var st unix.Stat_t
	if path == "" {
		if unix.Stat(base, &st) != nil {
			return ""
		}
		return identity(&st)
	}
	from, err := unix.Open(base, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(from)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	if path[0] == '/' {
		how.Resolve |= unix.RESOLVE_IN_ROOT
	}
	folder, err := unix.Openat2(from, path, &how)
	if err != nil {
		return ""
	}
	defer unix.Close(folder)
	if unix.Fstat(folder, &st) != nil {
		return ""
	}
	return identity(&st)
}

func identity(st *unix.Stat_t) string {
	return strconv.FormatUint(uint64(st.Dev), 10) + ":" + strconv.FormatUint(st.Ino, 10)
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

// pathArgument tells which argument of a system call is a path, and which the folder to which
// it is relative; -1: it is relative to the working folder.
type pathArgument struct {
	folder, path int
	renames      bool
}

// creating returns the system calls that create names on every architecture, or open files for
// writing, and their paths.
func creating() map[uint32][]pathArgument {
	out := map[uint32][]pathArgument{
		unix.SYS_OPENAT: {{0, 1, false}}, unix.SYS_MKNODAT: {{0, 1, false}}, unix.SYS_MKDIRAT: {{0, 1, false}}, unix.SYS_SYMLINKAT: {{1, 2, false}}, unix.SYS_LINKAT: {{0, 1, false}, {2, 3, false}},
		unix.SYS_RENAMEAT: {{0, 1, true}, {2, 3, true}}, unix.SYS_RENAMEAT2: {{0, 1, true}, {2, 3, true}},
	}
	for call, paths := range creatingHere() {
		out[call] = paths
	}
	return out
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
