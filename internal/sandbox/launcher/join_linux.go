//go:build amd64 || arm64

package launcher

import (
	"syscall"
	"unsafe"
)

const (
	prSetDeathSignal = 1
	prCapAmbient     = 47
	capAmbientRaise  = 2
	getUserNamespace = 0xb701 // ioctl NS_GET_USERNS
)

// Capabilities returns those that a launcher needs in its user namespace. It gives them up
// before the program runs.
func Capabilities() []uintptr {
	const dacOverride, setPCap, netBindService, netAdmin, sysAdmin = 1, 8, 10, 12, 21
	// dacOverride, over the caller's own files, is for the unreadable working folders of overlays.
	return []uintptr{dacOverride, setPCap, netBindService, netAdmin, sysAdmin}
}

// joinNamespaces starts a launcher that shares a net namespace that exists already: process 1 of new
// namespaces below the user namespace that owns it. It waits for that one and returns its exit code.
func joinNamespaces() int {
	const step = "joining the loopback of the session"
	exe, err := syscall.BytePtrFromString("/proc/self/exe")
	if err != nil {
		return reportFailure(fail(step, err))
	}
	argv, err := syscall.SlicePtrFromStrings([]string{Name})
	if err != nil {
		return reportFailure(fail(step, err))
	}
	env, err := syscall.SlicePtrFromStrings(syscall.Environ())
	if err != nil {
		return reportFailure(fail(step, err))
	}
	helper, errno := startJoined(exe, &argv[0], &env[0], Capabilities())
	if errno != 0 {
		return reportFailure(fail(step, errno))
	}
	for n := range uintptr(signals) { // those to the group are for the program
		if n != uintptr(syscall.SIGCHLD) { // without it nobody could wait
			setAction(n, &action{handler: ignoreSignal})
		}
	}
	if code := wait(int(helper)); code != 0 {
		return reportFailure(fail(step, syscall.Errno(code)))
	}
	_ = closeFrom(0)
	return wait(-1)
}

// wait waits for a child and returns its exit code.
func wait(pid int) int {
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, wall, nil); err != nil {
		return 1
	}
	return status.ExitStatus()
}

// startJoined starts a launcher that joins the net namespace. A process with several threads, which
// every Go program is, cannot enter a user namespace, so a helper does, which is a copy with the
// calling thread alone, and starts the launcher as its sibling. Its exit code is the number of its
// error. Go's runtime does not work in such copies, not even to grow a stack or to let
// another goroutine run: they only make system calls until the launcher executes the program.
//
//go:nosplit
//go:norace
func startJoined(exe *byte, argv, env **byte, capabilities []uintptr) (helper uintptr, errno syscall.Errno) {
	const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC
	helper, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, 0, 0, 0, 0, 0, 0)
	if errno != 0 || helper != 0 {
		return helper, errno
	}
	launcher := uintptr(0)
	owner, _, errno := syscall.RawSyscall(syscall.SYS_IOCTL, NetFD, getUserNamespace, 0)
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(sysSetns, owner, syscall.CLONE_NEWUSER, 0)
	}
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(sysSetns, NetFD, syscall.CLONE_NEWNET, 0)
	}
	if errno == 0 {
		launcher, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, syscall.CLONE_PARENT|namespaces, 0, 0, 0, 0, 0)
	}
	for errno != 0 || launcher != 0 {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetDeathSignal, uintptr(syscall.SIGKILL), 0)
	header := struct {
		version uint32
		pid     int32
	}{version: 0x20080522}
	var sets [6]uint32 // effective, permitted, inheritable, and the same for high numbers
	for _, number := range capabilities {
		for i := range 3 {
			sets[i] |= 1 << number
		}
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_CAPSET,
		uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets)), 0)
	for _, number := range capabilities {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prCapAmbient, capAmbientRaise, number, 0, 0, 0)
	}
	for { // without what failed, the launcher fails
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(exe)),
			uintptr(unsafe.Pointer(argv)), uintptr(unsafe.Pointer(env)))
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 1, 0, 0)
	}
}
