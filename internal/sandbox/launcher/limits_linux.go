//go:build amd64 || arm64

package launcher

import (
	"syscall"
	"unsafe"
)

// MinABI is the oldest version of Landlock that a sandbox needs: the first that keeps a
// program from abstract sockets and signals of others.
const MinABI = 6

const (
	prCapBSetDrop   = 24
	prSetSecureBits = 28
	prSetDumpable   = 4
	prSetNoNewPrivs = 38

	// The rights of root and of changed ids are permanently off, and no
	// capability can be made ambient: SECBIT_NOROOT, NO_SETUID_FIXUP and
	// NO_CAP_AMBIENT_RAISE with their locks, and KEEP_CAPS_LOCKED.
	secureBits = 0x1 | 0x2 | 0x4 | 0x8 | 0x20 | 0x40 | 0x80
)

// Access rights of Landlock, for Rule.Access.
const (
	Execute    = 1 << 0
	WriteFile  = 1 << 1
	ReadFile   = 1 << 2
	ReadDir    = 1 << 3
	Truncate   = 1 << 14
	IoctlDev   = 1 << 15
	makeChar   = 1 << 6
	makeBlock  = 1 << 11
	everything = 1<<16 - 1

	Read       = Execute | ReadFile | ReadDir
	Write      = everything &^ (makeChar | makeBlock | IoctlDev)
	forOneFile = Execute | WriteFile | ReadFile | Truncate | IoctlDev
)

// ABI returns the version of Landlock; 0 if it is not available.
func ABI() int {
	const version = 1
	n, _, errno := syscall.RawSyscall(sysLandlock, 0, 0, version)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// restrictFiles puts the thread into a Landlock domain in which only the
// accesses granted by the rules are possible, and from which neither abstract
// sockets nor processes outside can be reached.
func restrictFiles(rules []Rule) *failure {
	const step = "restricting access to files (Landlock)"
	if ABI() < MinABI {
		return fail(step, syscall.ENOSYS)
	}
	attr := struct{ files, network, scopes uint64 }{files: everything, scopes: 1 | 2}
	ruleset, _, errno := syscall.RawSyscall(sysLandlock, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fail(step, errno)
	}
	defer syscall.Close(int(ruleset))
	for _, r := range rules {
		if err := r.add(int(ruleset)); err != nil {
			return fail(step+" for "+r.Path, err)
		}
	}
	if err := prctl(prSetNoNewPrivs, 1); err != nil {
		return fail("setting no_new_privs", err)
	}
	_, _, errno = syscall.RawSyscall(sysLandlock+2, ruleset, 0, 0)
	return fail(step, errorOf(errno))
}

// add adds the rule; it ignores a path that does not exist.
func (r Rule) add(ruleset int) error {
	fd, err := syscall.Open(r.Path, oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		if isUnreachable(err) {
			return nil
		}
		return err
	}
	defer syscall.Close(fd)
	access := uint64(r.Access)
	if r.IsFile {
		access &= forOneFile
	}
	// struct landlock_path_beneath_attr is packed: 12 bytes.
	attr := struct {
		access uint64
		fd     int32
	}{access, int32(fd)}
	const pathBeneath = 1
	_, _, errno := syscall.RawSyscall6(sysLandlock+1, uintptr(ruleset),
		pathBeneath, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	return errorOf(errno)
}

// newKeyring replaces the session's keyring by an empty one.
func newKeyring() *failure {
	const joinSessionKeyring = 1
	_, _, errno := syscall.RawSyscall(syscall.SYS_KEYCTL, joinSessionKeyring, 0, 0)
	if errno == syscall.ENOSYS {
		return nil // a kernel without keyrings
	}
	return fail("leaving the session's keyring", errorOf(errno))
}

// dropCapabilities gives up all capabilities, and prevents programs of root or
// with file capabilities from getting any.
func dropCapabilities() *failure {
	const step = "giving up capabilities"
	if err := prctl(prSetSecureBits, secureBits); err != nil {
		return fail(step, err)
	}
	for capability := uintptr(0); ; capability++ {
		if err := prctl(prCapBSetDrop, capability); err == syscall.EINVAL {
			break // the kernel has no more capabilities
		} else if err != nil {
			return fail(step, err)
		}
	}
	header := struct {
		version uint32
		pid     int32
	}{version: 0x20080522}
	var none [6]uint32
	_, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET,
		uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0)
	return fail(step, errorOf(errno))
}

// installFilter loads the seccomp filter into every thread. If watched, it passes the
// listener of the filter to toolreg.
func installFilter(filter []byte, watched bool) *failure {
	const step = "filtering system calls (seccomp)"
	const setModeFilter, everyThread, instruction = 1, 1, 8
	// With ESRCH instead of the id of a thread that could not follow, and so that only
	// the death of a thread interrupts a call that waits for the listener.
	const newListener, failPlainly, killable = 8, 16, 32
	if len(filter) == 0 || len(filter)%instruction != 0 {
		return fail(step, syscall.EINVAL)
	}
	program := struct {
		length uint16
		filter *byte
	}{uint16(len(filter) / instruction), &filter[0]}
	flags := uintptr(everyThread)
	if watched {
		flags |= newListener | failPlainly | killable
	}
	n, _, errno := syscall.RawSyscall(sysSeccomp, setModeFilter, flags, uintptr(unsafe.Pointer(&program)))
	switch {
	case errno != 0:
	case watched:
		sendReport(Report{Kind: Watching}, int(n))
		syscall.Close(int(n))
	case n != 0:
		errno = syscall.EBUSY // the id of a thread that could not follow
	}
	return fail(step, errorOf(errno))
}
