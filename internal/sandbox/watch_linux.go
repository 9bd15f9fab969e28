//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"errors"
	"iter"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watcher collects the names that a program uses. The kernel suspends each system call
// that could create or remove a name, or opens a file for writing, until the watcher has read
// the name. Then the kernel runs it normally, unless the broker has made the change.
type watcher struct {
	listener *os.File
	stop     *os.File // closing it ends serve
	stopped  *os.File
	names    *Names
	broker   *broker // nil means the kernel runs every call
	done     chan struct{}
}

// watch takes over a seccomp listener and serves it until close.
func watch(listener *os.File, names *Names, b *broker) (*watcher, error) {
	stopped, stop, err := os.Pipe()
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	w := &watcher{listener: listener, stop: stop, stopped: stopped, names: names, broker: b, done: make(chan struct{})}
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
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener),
		unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	calls := watched()
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
		w.answer(n, calls[uint32(n.call)])
	}
}

// answer notes the names of a call and has it run.
func (w *watcher) answer(n notification, c watchedCall) {
	places := make([]place, len(c.paths))
	for i, arg := range c.paths {
		for p := range w.places(n, c, arg) {
			places[i].close()
			places[i] = p
			if c.does != removing && c.does != changingMode && p.name != "" {
				w.names.add(p.id, p.name)
			}
			if c.does == renaming {
				w.names.add(p.id, Renamed+p.name)
			}
		}
	}
	r := reply{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	o := w.broker.runCall(n, c, places)
	for _, p := range places {
		p.close()
	}
	if o.opened {
		o.err = w.pass(n, o.fd, c.flagsOf(n)) // which is the answer, unless it fails
	}
	if !o.kernel {
		r.flags, r.err = 0, -int32(o.err)
	}
	// If it fails, the thread was killed or has its answer.
	_ = control(int(w.listener.Fd()), unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// pass gives the program an open file, which becomes the result of its call.
func (w *watcher) pass(n notification, fd, flags int) unix.Errno {
	defer unix.Close(fd)
	request := struct {
		id                              uint64
		flags, source, target, newFlags uint32
	}{n.id, unix.SECCOMP_ADDFD_FLAG_SEND, uint32(fd), 0, uint32(flags & unix.O_CLOEXEC)}
	return errno(control(int(w.listener.Fd()), unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&request)))
}

// place is a name in a folder, as a program sees it.
type place struct {
	folder *os.File // nil means it cannot be found
	id     string   // of the folder as in [Names.Has]; "" if the program could make it another one
	path   string   // of the folder, without links
	name   string   // "" means the call names no file
}

func (p place) close() { _ = p.folder.Close() }

// places returns the place that an argument names, and if it is a link that the call follows, the
// places that it leads to one after the other. The caller closes them.
func (w *watcher) places(n notification, c watchedCall, arg pathArgument) iter.Seq[place] {
	return func(yield func(place) bool) {
		process := "/proc/" + strconv.Itoa(int(n.pid))
		base, path := process+"/cwd", readPath(int(n.pid), uintptr(n.args[arg.path]))
		if fd := int(int32(n.args[max(arg.folder, 0)])); arg.folder >= 0 && fd != unix.AT_FDCWD {
			base = process + "/fd/" + strconv.Itoa(fd)
		}
		if fd, ok := descriptor(path); ok {
			path, _ = os.Readlink(process + "/fd/" + fd)
		}
		for range maxLinks {
			p := findPlace(process, base, path)
			target := ""
			if p.folder != nil && c.follows(n) {
				target = readLink(p)
			}
			if !yield(p) || target == "" {
				return
			}
			if path = target; !strings.HasPrefix(target, "/") {
				path = p.path + "/" + target
			}
		}
	}
}

// findPlace finds the place of a path that is relative to a link of /proc.
func findPlace(process, base, path string) place {
	if strings.HasPrefix(path, "/") {
		base = process + "/root"
	}
	path = strings.TrimRight(path, "/")
	at := strings.LastIndexByte(path, '/') + 1
	p := place{name: path[at:]}
	if p.name == "." || p.name == ".." {
		p.name = ""
	}
	if p.name == "" {
		return p
	}
	var st unix.Stat_t
	p.folder = openFolder(base, path[:at], unix.RESOLVE_NO_SYMLINKS)
	if p.folder != nil && unix.Fstat(int(p.folder.Fd()), &st) == nil {
		p.id = identity(&st)
	} else if p.folder == nil {
		folder := path[:at]
		if !strings.HasPrefix(path, "/") { // an absolute link on the way means the root of the program
			start, _ := os.Readlink(base)
			folder = start + "/" + folder
		}
		p.folder = openFolder(process+"/root", folder, unix.RESOLVE_NO_MAGICLINKS)
	}
	if p.folder != nil {
		p.path, _ = os.Readlink("/proc/self/fd/" + strconv.Itoa(int(p.folder.Fd())))
	}
	return p
}

// readLink returns the target of the link at a place; "" if it is none.
func readLink(p place) string {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(p.folder.Fd()), p.name, buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
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

// openFolder opens a folder by a path relative to a link of /proc, which is the root of absolute
// paths; nil if there is none.
func openFolder(base, path string, resolve uint64) *os.File {
	from, err := unix.Open(base, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	if path == "" {
		return os.NewFile(uintptr(from), base)
	}
	defer unix.Close(from)
	if path[0] == '/' {
		resolve |= unix.RESOLVE_IN_ROOT
	}
	folder, err := openFolderAt(from, path, resolve)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(folder), path)
}

// openFolderAt opens a folder by a path relative to another one, as a place only.
func openFolderAt(folder int, path string, resolve uint64) (int, error) {
	return unix.Openat2(folder, path,
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: resolve})
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
// it is relative, or -1 if that is the working folder.
type pathArgument struct{ folder, path int }

// watchedCall is a system call that is passed to the watcher. flags and mode are the numbers of
// the arguments with them, or 0 if it has none.
type watchedCall struct {
	does        doing
	paths       []pathArgument
	flags, mode int
	always      int // flags that it has without saying so
}

// doing is what a watched call does.
type doing int

const (
	opening doing = iota // for writing, and creates the file if there is none
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

// watched returns the system calls that create, write or remove names on every architecture.
func watched() map[uint32]watchedCall {
	one, two := []pathArgument{{0, 1}}, []pathArgument{{0, 1}, {2, 3}}
	out := map[uint32]watchedCall{
		unix.SYS_OPENAT:    {does: opening, paths: one, flags: 2, mode: 3},
		unix.SYS_MKNODAT:   {does: makingNode, paths: one, mode: 2},
		unix.SYS_MKDIRAT:   {does: makingFolder, paths: one, mode: 2},
		unix.SYS_SYMLINKAT: {does: symlinking, paths: []pathArgument{{1, 2}}},
		unix.SYS_LINKAT:    {does: linking, paths: two, flags: 4},
		unix.SYS_RENAMEAT:  {does: renaming, paths: two},
		unix.SYS_RENAMEAT2: {does: renaming, paths: two, flags: 4},
		unix.SYS_UNLINKAT:  {does: removing, paths: one, flags: 2},
		unix.SYS_FCHMODAT:  {does: changingMode, paths: one, mode: 2},
		unix.SYS_FCHMODAT2: {does: changingMode, paths: one, flags: 3, mode: 2},
	}
	maps.Copy(out, watchedHere())
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
