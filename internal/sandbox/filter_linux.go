//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// lastCall is the newest system call that was reviewed (file_setattr, Linux 6.17). Newer
// ones do not exist for a sandboxed program.
const lastCall = 469

// refusedCalls lists the system calls that fail with EPERM on every architecture.
func refusedCalls() []uint32 {
	return append([]uint32{
		// Mounts and roots.
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE,
		unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
		unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
		unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
		// Namespaces and other processes.
		unix.SYS_SETNS, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
		unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
		// Keyrings.
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		// Programs in the kernel, and the kernel itself.
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_INIT_MODULE,
		unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
		unix.SYS_REBOOT, unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
		unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
		unix.SYS_VHANGUP, unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE,
	}, refusedHere()...)
}

// watchedCalls returns the system calls that create, write or remove names on every architecture.
func watchedCalls() map[uint32]watchedCall {
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

// anyNamespace has the flags of clone that create namespaces, except CLONE_NEWTIME, which
// clone interprets as a signal.
const anyNamespace = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// setIDs are the mode bits that make a program run as its owner or group. The sandbox's
// mounts ignore them, but a file in the workspace would keep them.
const setIDs = unix.S_ISUID | unix.S_ISGID

// filter returns the seccomp filter of sandboxed programs in the kernel's format. If notify is set,
// calls that create or remove names, or open files for writing, are passed to the listener before they run.
func filter(notify bool) []byte {
	a := assembler{watched: returnAllow}
	if notify {
		a.watched = unix.SECCOMP_RET_USER_NOTIF
	}
	a.load(offsetArch)
	a.unless(jumpEqual, auditArch, returnKill)
	a.load(offsetCall)
	a.when(jumpGreater, lastCall, failWith(unix.ENOSYS)) // also the calls of x32
	// Programs fall back to older calls. The arguments of clone3 and openat2 are in memory, which filters cannot read.
	for _, call := range []uint32{unix.SYS_CLONE3, unix.SYS_OPENAT2,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER} {
		a.when(jumpEqual, call, failWith(unix.ENOSYS))
	}
	for _, call := range refusedCalls() {
		a.when(jumpEqual, call, failWith(unix.EPERM))
	}
	a.refuseBits(unix.SYS_CLONE, 0, anyNamespace)
	a.refuseBits(unix.SYS_UNSHARE, 0, anyNamespace|unix.CLONE_NEWTIME)
	a.refuseBits(unix.SYS_FCHMOD, 1, setIDs)
	calls := watchedCalls()
	for _, number := range slices.Sorted(maps.Keys(calls)) {
		switch c := calls[number]; {
		case c.does == opening && c.flags != 0:
			a.refuseCreating(number, uint32(c.flags), uint32(c.mode))
		case c.does == opening || c.does == makingNode || c.does == changingMode:
			a.refuseMode(number, uint32(c.mode))
		default:
			a.when(jumpEqual, number, a.watched)
		}
	}
	a.call(unix.SYS_IOCTL, func() {
		a.load(offsetArg(1))
		for _, request := range []uint32{unix.TIOCSTI, tiocLinux, unix.TIOCSETD, unix.TIOCCONS} {
			a.when(jumpEqual, request, failWith(unix.EPERM))
		}
	})
	for _, call := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		a.call(call, a.families)
	}
	a.ret(returnAllow)
	return a.out
}

// families allows the socket families unix, inet and inet6 with the usual protocols, and
// netlink only for addresses and routes. Other families would load kernel modules that
// are not needed.
func (a *assembler) families() {
	a.load(offsetArg(0))
	a.when(jumpEqual, unix.AF_UNIX, returnAllow)
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		a.onlyProtocols(family, 0, unix.IPPROTO_TCP, unix.IPPROTO_UDP,
			unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6, unix.IPPROTO_MPTCP)
	}
	a.onlyProtocols(unix.AF_NETLINK, unix.NETLINK_ROUTE)
	a.ret(failWith(unix.EAFNOSUPPORT))
}

// onlyProtocols allows some protocols of a family; the family must have been loaded. It
// has no effect on other families.
func (a *assembler) onlyProtocols(family uint32, protocols ...uint32) {
	a.block(family, func() {
		a.load(offsetArg(2))
		for _, protocol := range protocols {
			a.when(jumpEqual, protocol, returnAllow)
		}
		a.ret(failWith(unix.EPROTONOSUPPORT))
	})
}

// Offsets in struct seccomp_data. For arguments, the offset of the lower half, which
// contains all bits that the filter examines. Both architectures are little-endian.
const (
	offsetCall = 0
	offsetArch = 4
)

func offsetArg(n uint32) uint32 { return 16 + 8*n }

// Results of a filter, and opcodes of its instructions.
const (
	returnAllow = unix.SECCOMP_RET_ALLOW
	returnKill  = unix.SECCOMP_RET_KILL_PROCESS

	opLoad      = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	opReturn    = unix.BPF_RET | unix.BPF_K
	jumpEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpGreater = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K
	jumpBits    = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K

	tiocLinux = 0x541C
)

func failWith(err unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(err) }

// assembler builds a filter.
type assembler struct {
	out     []byte
	watched uint32 // result of the calls in watched
}

func (a *assembler) emit(op uint16, yes, no byte, k uint32) {
	a.out = binary.LittleEndian.AppendUint16(a.out, op)
	a.out = append(a.out, yes, no)
	a.out = binary.LittleEndian.AppendUint32(a.out, k)
}

func (a *assembler) load(offset uint32) { a.emit(opLoad, 0, 0, offset) }
func (a *assembler) ret(result uint32)  { a.emit(opReturn, 0, 0, result) }

// when returns a result if the comparison is true; unless, if it is false.
func (a *assembler) when(jump uint16, k, result uint32) {
	a.emit(jump, 0, 1, k)
	a.ret(result)
}

func (a *assembler) unless(jump uint16, k, result uint32) {
	a.emit(jump, 1, 0, k)
	a.ret(result)
}

// block adds instructions that run if the loaded field has a value. They may load another
// field, and must end by returning.
func (a *assembler) block(value uint32, body func()) {
	start := len(a.out)
	a.emit(jumpEqual, 0, 0, value)
	body()
	a.out[start+3] = byte((len(a.out)-start)/8 - 1) // skip them if the value differs
}

// call adds instructions for one system call, which is allowed if they do not return.
func (a *assembler) call(number uint32, body func()) {
	a.block(number, func() {
		body()
		a.ret(returnAllow)
	})
}

// refuseBits rejects a system call if an argument has one of these bits.
func (a *assembler) refuseBits(number, arg, bits uint32) {
	a.call(number, func() {
		a.load(offsetArg(arg))
		a.when(jumpBits, bits, failWith(unix.EPERM))
	})
}

// refuseCreating rejects a system call that creates a file with setIDs. Opening for writing
// is like creating a name.
func (a *assembler) refuseCreating(number, flags, mode uint32) {
	const temporary = unix.O_TMPFILE &^ unix.O_DIRECTORY
	a.call(number, func() {
		a.load(offsetArg(flags))
		a.unless(jumpBits, unix.O_CREAT|temporary|unix.O_WRONLY|unix.O_RDWR, returnAllow)
		a.unless(jumpBits, unix.O_CREAT|temporary, a.watched)
		a.load(offsetArg(mode))
		a.when(jumpBits, setIDs, failWith(unix.EPERM))
		a.load(offsetArg(flags))
		a.when(jumpBits, unix.O_CREAT, a.watched)
	})
}

// refuseMode is like refuseBits, for a watched call that sets a mode.
func (a *assembler) refuseMode(number, mode uint32) {
	a.block(number, func() {
		a.load(offsetArg(mode))
		a.when(jumpBits, setIDs, failWith(unix.EPERM))
		a.ret(a.watched)
	})
}
