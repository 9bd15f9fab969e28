//go:build amd64 || arm64

package sandbox_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// call is a system call of a confined program and the expected result.
type call struct {
	name   string
	number uintptr
	args   [6]uintptr
	want   unix.Errno
}

// calls lists calls that the filter handles, and similar ones that it must not
// affect.
func calls() []call {
	const atCWD, signal = ^uintptr(99), uintptr(unix.SIGCHLD)
	return append([]call{
		{"clone with a user namespace", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWUSER | signal}, unix.EPERM},
		{"clone3", unix.SYS_CLONE3, [6]uintptr{}, unix.ENOSYS},
		{"unshare mounts", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWNS}, unix.EPERM},
		{"unshare users", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWUSER}, unix.EPERM},
		{"unshare time", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWTIME}, unix.EPERM},
		{"unshare nothing", unix.SYS_UNSHARE, [6]uintptr{}, 0},
		{"setns", unix.SYS_SETNS, [6]uintptr{0, 0}, unix.EPERM},
		{"mount", unix.SYS_MOUNT, [6]uintptr{}, unix.EPERM},
		{"umount2", unix.SYS_UMOUNT2, [6]uintptr{}, unix.EPERM},
		{"fsopen", unix.SYS_FSOPEN, [6]uintptr{}, unix.EPERM},
		{"open_tree_attr", unix.SYS_OPEN_TREE_ATTR, [6]uintptr{}, unix.EPERM},
		{"chroot", unix.SYS_CHROOT, [6]uintptr{}, unix.EPERM},
		{"openat2", unix.SYS_OPENAT2, [6]uintptr{}, unix.ENOSYS},
		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [6]uintptr{}, unix.EPERM},
		{"ptrace", unix.SYS_PTRACE, [6]uintptr{unix.PTRACE_TRACEME}, unix.EPERM},
		{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [6]uintptr{1}, unix.EPERM},
		{"pidfd_getfd", unix.SYS_PIDFD_GETFD, [6]uintptr{}, unix.EPERM},
		{"keyctl", unix.SYS_KEYCTL, [6]uintptr{}, unix.EPERM},
		{"add_key", unix.SYS_ADD_KEY, [6]uintptr{}, unix.EPERM},
		{"bpf", unix.SYS_BPF, [6]uintptr{}, unix.EPERM},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [6]uintptr{}, unix.EPERM},
		{"userfaultfd", unix.SYS_USERFAULTFD, [6]uintptr{1}, unix.EPERM},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, [6]uintptr{1}, unix.ENOSYS},
		{"kexec_load", unix.SYS_KEXEC_LOAD, [6]uintptr{}, unix.EPERM},
		{"finit_module", unix.SYS_FINIT_MODULE, [6]uintptr{}, unix.EPERM},
		{"a future call", 500, [6]uintptr{}, unix.ENOSYS},
		{"ioctl TIOCSTI", unix.SYS_IOCTL, [6]uintptr{0, unix.TIOCSTI}, unix.EPERM},
		{"ioctl TIOCSTI with more bits", unix.SYS_IOCTL, [6]uintptr{0, 1<<32 | unix.TIOCSTI}, unix.EPERM},
		{"ioctl TIOCLINUX", unix.SYS_IOCTL, [6]uintptr{0, 0x541C}, unix.EPERM},
		{"ioctl TCGETS", unix.SYS_IOCTL, [6]uintptr{0, unix.TCGETS}, unix.ENOTTY},
		{"socket unix", unix.SYS_SOCKET, [6]uintptr{unix.AF_UNIX, unix.SOCK_STREAM}, 0},
		{"socket inet6", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET6, unix.SOCK_DGRAM}, 0},
		{"socket inet raw", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, unix.EPERM},
		{"socket inet tcp", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP}, 0},
		{"socket inet sctp", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, unix.EPROTONOSUPPORT},
		{"socket inet6 any raw", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW}, unix.EPROTONOSUPPORT},
		{"socketpair unix", unix.SYS_SOCKETPAIR, [6]uintptr{unix.AF_UNIX, unix.SOCK_STREAM}, unix.EFAULT},
		{"socketpair tipc", unix.SYS_SOCKETPAIR, [6]uintptr{unix.AF_TIPC, unix.SOCK_STREAM}, unix.EAFNOSUPPORT},
		{"socket packet", unix.SYS_SOCKET, [6]uintptr{unix.AF_PACKET, unix.SOCK_RAW}, unix.EAFNOSUPPORT},
		{"socket vsock", unix.SYS_SOCKET, [6]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}, unix.EAFNOSUPPORT},
		{"socket netlink route", unix.SYS_SOCKET, [6]uintptr{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, 0},
		{"socket netlink audit", unix.SYS_SOCKET, [6]uintptr{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, unix.EPROTONOSUPPORT},
		{"fchmodat set-user-id", unix.SYS_FCHMODAT, [6]uintptr{atCWD, 0, 0o4755}, unix.EPERM},
		{"fchmodat2 set-group-id", unix.SYS_FCHMODAT2, [6]uintptr{atCWD, 0, 0o2755}, unix.EPERM},
		{"fchmod plain", unix.SYS_FCHMOD, [6]uintptr{^uintptr(0), 0o755}, unix.EBADF},
		{"openat creating set-user-id", unix.SYS_OPENAT, [6]uintptr{atCWD, 0, unix.O_CREAT, 0o4755}, unix.EPERM},
		{"openat reading, mode ignored", unix.SYS_OPENAT, [6]uintptr{atCWD, 0, unix.O_RDONLY, 0o4755}, unix.EFAULT},
		{"openat a folder, mode ignored", unix.SYS_OPENAT, [6]uintptr{atCWD, 0, unix.O_DIRECTORY, 0o4755}, unix.EFAULT},
		{"openat writing, mode ignored", unix.SYS_OPENAT, [6]uintptr{atCWD, 0, unix.O_WRONLY, 0o4755}, unix.EFAULT},
		{"openat temporary, set-group-id", unix.SYS_OPENAT, [6]uintptr{atCWD, 0, unix.O_TMPFILE | unix.O_RDWR, 0o2755}, unix.EPERM},
		{"openat creating", unix.SYS_OPENAT, [6]uintptr{atCWD, 0, unix.O_CREAT | unix.O_RDWR, 0o755}, unix.EFAULT},
		{"mknodat set-user-id", unix.SYS_MKNODAT, [6]uintptr{atCWD, 0, unix.S_IFREG | 0o4755}, unix.EPERM},
	}, callsHere()...)
}

// makeCalls makes the calls and prints the results.
func makeCalls() {
	for _, c := range calls() {
		_, _, errno := unix.RawSyscall6(c.number, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		fmt.Printf("%s: %d\n", c.name, int(errno))
	}
}

func TestSystemCalls(t *testing.T) {
	needFull(t)
	p := newPlace(t)
	got := p.self(t, p.profile(), "calls")
	for _, c := range calls() {
		if want := fmt.Sprintf("%s: %d\n", c.name, int(c.want)); !strings.Contains(got, want) {
			t.Errorf("%s is not %q", c.name, c.want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}
