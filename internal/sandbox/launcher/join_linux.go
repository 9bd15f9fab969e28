//go:build amd64 || arm64

package launcher

import "syscall"

const (
	prSetDeathSignal = 1
	getUserNamespace = 0xb701 // ioctl NS_GET_USERNS
	ignoreSignal     = 1      // SIG_IGN
)

// join makes this launcher the parent of one that shares a net namespace that exists already:
// process 1 of new namespaces below the user namespace that owns it. It returns in that one
// only; the parent waits for it and exits.
//
// A process with several threads, which every Go program is, cannot enter a user namespace. A
// fork that is no Go program's has one thread, so it enters, and starts the launcher as its sibling.
// Neither needs a second thread of Go's runtime: they only make system calls, and the
// garbage collector is off.
func join() {
	const step = "joining the loopback of the session"
	helper, errno := fork(0)
	switch {
	case errno != 0:
		abandon(step, errno)
	case helper != 0:
		supervise()
	}
	owner, _, errno := syscall.RawSyscall(syscall.SYS_IOCTL, NetFD, getUserNamespace, 0)
	if errno != 0 {
		abandon(step, errno)
	}
	for _, ns := range [...]struct{ fd, kind uintptr }{{owner, syscall.CLONE_NEWUSER}, {NetFD, syscall.CLONE_NEWNET}} {
		if _, _, errno := syscall.RawSyscall(sysSetns, ns.fd, ns.kind, 0); errno != 0 {
			abandon(step, errno)
		}
	}
	pid, errno := fork(syscall.CLONE_PARENT | syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC)
	if errno != 0 {
		abandon("creating namespaces", errno)
	}
	if pid != 0 {
		syscall.Exit(0)
	}
	if err := prctl(prSetDeathSignal, uintptr(syscall.SIGKILL)); err != nil {
		abandon(step, err.(syscall.Errno))
	}
}

// fork copies the process, with the calling thread alone, and returns 0 in the copy.
func fork(flags uintptr) (pid int, errno syscall.Errno) {
	flags |= uintptr(syscall.SIGCHLD)
	r, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	return int(r), errno
}

// abandon reports the failure of a step and exits.
func abandon(step string, errno syscall.Errno) {
	report(Report{Kind: Failed, Value: int(errno), Step: step}, -1)
	syscall.Exit(1)
}

// supervise waits for the helper and the launcher, and exits with the launcher's code.
// Signals to the group are for the program.
func supervise() {
	for n := uintptr(1); n <= signals; n++ {
		if syscall.Signal(n) != syscall.SIGCHLD {
			setAction(n, &action{handler: ignoreSignal})
		}
	}
	_ = closeFrom(0)
	code := 1
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(-1, &status, wall, nil)
		switch {
		case err == nil:
			code = status.ExitStatus()
		case err != syscall.EINTR:
			syscall.Exit(code)
		}
	}
}
