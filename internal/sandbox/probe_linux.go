//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/lazy"
	"github.com/toolreg/toolreg/internal/sandbox/launcher"
)

// Probe tests what the sandbox needs. It tries everything instead of relying on version
// numbers, because the security modules of some distributions allow a user namespace but
// nothing in it. If this process may be restricted itself, Probe sets up a complete
// sandbox without a program. The first call takes between one and five milliseconds, and
// its result is kept.
func Probe() Support { return probed.Get() }

// probed keeps the result, since the kernel does not change while toolreg runs.
var probed = lazy.New(probe)

func probe() Support {
	parts := []Part{
		{Name: "user namespaces", OK: true}, {Name: "mount namespaces", OK: true},
		{Name: "process namespaces", OK: true},
		{Name: "IPC namespaces", OK: true}, {Name: "network namespaces", OK: true},
		landlockPart(launcher.ABI()),
		partOf("no_new_privs", prctlKnows(unix.PR_GET_NO_NEW_PRIVS)),
		partOf("seccomp", filterKnown()),
	}
	s := Support{Parts: parts}
	if s.Full() && isOrdinary() && canMount() {
		return s
	}
	err := trySandbox()
	if err == nil {
		return s
	}
	if err := canClone(unix.CLONE_NEWUSER); err != nil {
		// Without user namespaces there are no others.
		s.Parts = append([]Part{{Name: "user namespaces", Detail: whyNone(err)}}, parts[5:]...)
		return s
	}
	for i, flag := range []uintptr{unix.CLONE_NEWNS, unix.CLONE_NEWPID, unix.CLONE_NEWIPC, unix.CLONE_NEWNET} {
		parts[i+1] = partOf(parts[i+1].Name, canClone(unix.CLONE_NEWUSER|flag))
	}
	if s.Full() {
		s.Parts = append(s.Parts, Part{Name: "using them", Detail: err.Error()})
	}
	return s
}

// whyNone explains why user namespaces cannot be created.
func whyNone(err error) string {
	switch {
	case errors.Is(err, unix.ENOSPC):
		return "the limit user.max_user_namespaces is reached"
	case errors.Is(err, unix.EPERM):
		return "the system forbids them; see kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns"
	}
	return err.Error()
}

func partOf(name string, err error) Part {
	if err != nil {
		return Part{Name: name, Detail: err.Error()}
	}
	return Part{Name: name, OK: true}
}

// trySandbox sets up a sandbox without a program.
func trySandbox() error {
	s, err := prepare(&launcher.Plan{
		UID:      os.Geteuid(),
		GID:      os.Getegid(),
		Loopback: true,
		Ops:      emptyLayout(),
		Filter:   filter(false),
		Dir:      "/",
	}, Network{})
	if err != nil {
		return err
	}
	defer s.Close()
	attr := &syscall.SysProcAttr{}
	s.Attributes(attr)
	files := append([]*os.File{nil, nil, nil}, s.Files...)
	p, err := os.StartProcess(s.Path, s.Argv, &os.ProcAttr{Env: s.Env, Files: files, Sys: attr})
	if err != nil {
		return fmt.Errorf("creating namespaces: %w", errnoOf(err))
	}
	err = s.Started()
	_, _ = p.Wait() // the report has the result
	return err
}

// isOrdinary reports whether only the kernel decides what this process may do: it has no
// seccomp filter, and no container hides parts of /proc, which would prevent mounting a
// new one.
func isOrdinary() bool {
	if mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); err != nil || mode != 0 {
		return false
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && !coversProc(string(mounts))
}

// coversProc reports whether a part of /proc is hidden, by the content of mountinfo.
func coversProc(mounts string) bool {
	for line := range strings.Lines(mounts) {
		const at = 4 // index of the mount point
		fields := strings.Fields(line)
		if len(fields) <= at || strings.HasPrefix(fields[at], "/proc/") && fields[at] != "/proc/sys/fs/binfmt_misc" {
			return true
		}
	}
	return false
}

// canMount tries to create all namespaces and to change a mount in them.
func canMount() bool {
	return start(&syscall.SysProcAttr{
		Cloneflags:   namespaces | unix.CLONE_VM | unix.CLONE_VFORK,
		Unshareflags: unix.CLONE_NEWNS, // with it, package syscall also makes all mounts private
	}) == nil
}

// canClone tries to create namespaces.
func canClone(flags uintptr) error {
	return start(&syscall.SysProcAttr{Cloneflags: flags | unix.CLONE_VM | unix.CLONE_VFORK})
}

// start starts a program that does not exist, and returns an error if a step
// before that failed.
func start(attr *syscall.SysProcAttr) error {
	p, err := os.StartProcess("/proc/self/exe/none", []string{"none"}, &os.ProcAttr{Sys: attr})
	if err == nil {
		_, _ = p.Wait()
		return nil
	}
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return errnoOf(err)
}

// errnoOf returns the kernel's error without the text that package os adds.
func errnoOf(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

func landlockPart(abi int) Part {
	switch {
	case abi == 0:
		return Part{Name: "Landlock", Detail: "not enabled in this kernel"}
	case abi < launcher.MinABI:
		return Part{Name: "Landlock",
			Detail: fmt.Sprintf("version %d; %d is needed, from Linux 6.12", abi, launcher.MinABI)}
	default:
		return Part{Name: "Landlock", OK: true, Detail: fmt.Sprintf("version %d", abi)}
	}
}

func prctlKnows(operation int) error {
	_, err := unix.PrctlRetInt(operation, 0, 0, 0, 0)
	return err
}

// filterKnown asks the kernel for the newest action of a filter.
func filterKnown() error {
	action := uint32(returnKill)
	const actionAvailable = 2
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, actionAvailable, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return errno
	}
	return nil
}
