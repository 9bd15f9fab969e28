//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/sandbox/launcher"
)

// Probe tries what a sandbox in full needs: it sets one up in a new process. It
// does not rely on what the kernel says to allow, because security modules of some
// distributions allow a user namespace but nothing in it. The first call takes
// some milliseconds; its answer is kept.
func Probe() Support { return probed() }

// probed keeps the answer: the kernel does not change while toolreg runs.
var probed = sync.OnceValue(probe)

func probe() Support {
	err := try()
	parts := []Part{
		{Name: "user namespaces", OK: true}, {Name: "mount namespaces", OK: true}, {Name: "process namespaces", OK: true},
		{Name: "IPC namespaces", OK: true}, {Name: "network namespaces", OK: true},
		landlockPart(),
		partOf("no_new_privs", prctlKnows(unix.PR_GET_NO_NEW_PRIVS)),
		partOf("seccomp", filterKnown()),
	}
	if err == nil {
		return Support{Parts: parts}
	}
	for i, flag := range []uintptr{0, unix.CLONE_NEWNS, unix.CLONE_NEWPID, unix.CLONE_NEWIPC, unix.CLONE_NEWNET} {
		parts[i] = partOf(parts[i].Name, canClone(unix.CLONE_NEWUSER|flag))
	}
	s := Support{Parts: parts}
	if s.Full() {
		s.Parts = append(s.Parts, Part{Name: "all of them together", Detail: err.Error()})
	}
	return s
}

func partOf(name string, err error) Part {
	if err != nil {
		return Part{Name: name, Detail: err.Error()}
	}
	return Part{Name: name, OK: true}
}

// try sets up a sandbox in which nothing runs.
func try() error {
	s, err := prepare(&launcher.Plan{UID: os.Geteuid(), GID: os.Getegid(), Loopback: true, Ops: emptyLayout(), Filter: filter(), Dir: "/"}, Network{})
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
	_, _ = p.Wait() // the report counts
	return err
}

// canClone tries to create namespaces, for a program that does not exist.
func canClone(flags uintptr) error {
	attr := &syscall.SysProcAttr{Cloneflags: flags | unix.CLONE_VM | unix.CLONE_VFORK}
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

// errnoOf returns the kernel's reason without what os says of it.
func errnoOf(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

func landlockPart() Part {
	switch abi := launcher.ABI(); {
	case abi == 0:
		return Part{Name: "Landlock", Detail: "not enabled in this kernel"}
	case abi < launcher.MinABI:
		return Part{Name: "Landlock", Detail: fmt.Sprintf("version %d; %d is needed, from Linux 6.12", abi, launcher.MinABI)}
	default:
		return Part{Name: "Landlock", OK: true, Detail: fmt.Sprintf("version %d", abi)}
	}
}

func prctlKnows(operation int) error {
	_, err := unix.PrctlRetInt(operation, 0, 0, 0, 0)
	return err
}

// filterKnown asks for the action of the filter that came last to the kernel.
func filterKnown() error {
	action := uint32(returnKill)
	const actionAvailable = 2
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, actionAvailable, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return errno
	}
	return nil
}
