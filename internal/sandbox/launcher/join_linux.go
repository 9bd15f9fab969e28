//go:build amd64 || arm64

package launcher

import "syscall"

const (
	prSetDeathSignal = 1
	getUserNamespace = 0xb701 // ioctl NS_GET_USERNS
	ignoreSignal     = 1      // SIG_IGN
)

// join makes this launcher the parent of one that shares a net namespace that exists already:
// process 1 of new namespaces below the user namespace that owns it. It returns in that one,
// or with a failure; the parent waits for it and exits.
//
// A process with several threads, which every Go program is, cannot enter a user namespace. A
// fork that is no Go program's has one thread, so it enters, and starts the launcher as its sibling.
// Neither needs a second thread of Go's runtime: they only make system calls, and the
// garbage collector is off.
func join() *failure {
	const step = "joining the loopback of the session"
	helper, err := fork(0)
	if err != nil {
		return fail(step, err)
	}
	if helper != 0 {
		supervise(helper)
	}
	owner, _, errno := syscall.RawSyscall(syscall.SYS_IOCTL, NetFD, getUserNamespace, 0)
	if errno != 0 {
		return fail(step, errno)
	}
	for _, ns := range [...]struct{ fd, kind uintptr }{{owner, syscall.CLONE_NEWUSER}, {NetFD, syscall.CLONE_NEWNET}} {
		if _, _, errno := syscall.RawSyscall(sysSetns, ns.fd, ns.kind, 0); errno != 0 {
			return fail(step, errno)
		}
	}
	pid, err := fork(syscall.CLONE_PARENT | syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC)
	if err != nil {
		return fail("creating namespaces", err)
	}
	if pid != 0 {
		syscall.Exit(0)
	}
	return fail(step, prctl(prSetDeathSignal, uintptr(syscall.SIGKILL)))
}

// fork copies the process, with the calling thread alone, and returns 0 in the copy. The end of
// the copy sends no signal.
func fork(flags uintptr) (pid int, err error) {
	r, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	return int(r), errorOf(errno)
}

// supervise waits for the helper and then for the launcher that it has started, and exits with
// the code of the last one. Signals to the group are for the program.
func supervise(helper int) {
	for n := range uintptr(signals) {
		setAction(n, &action{handler: ignoreSignal})
	}
	_ = closeFrom(0)
	code := 1
	for pid := helper; ; pid = -1 {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, wall, nil); err != nil {
			syscall.Exit(code)
		}
		code = status.ExitStatus()
	}
}
