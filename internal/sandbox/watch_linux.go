//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"iter"
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

// watchNames takes over a seccomp listener and serves it until close.
func watchNames(listener *os.File, names *Names, b *broker) (*watcher, error) {
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
	calls := watchedCalls()
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

// answer records the names of a call and has it run.
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
		o.err = w.pass(n, o.fd, c.flagsOf(n)) // this answers the call, unless it fails
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

// places returns the place that an argument names and, if that is a link which the call follows,
// the places to which it leads, in order. The caller closes them.
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

// reply is struct seccomp_notif_resp.
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
