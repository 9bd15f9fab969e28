//go:build amd64 || arm64

package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/sandbox"
)

const landlockVersion = 1 // the flag that asks for it

// pretend acts as a toolreg on a kernel without a feature. A filter or a limit
// around this process removes the feature, so that attempts really fail. It prints
// what Probe reports as missing, and whether a program could be run.
func pretend(kernel string) {
	runtime.LockOSThread() // filters apply to this thread and its children
	none := sandbox.FailWith(unix.ENOSYS)
	switch name, value, _ := strings.Cut(kernel, "="); name {
	case "namespaces":
		check(os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0o644))
	case "landlock":
		install(sandbox.OuterFilter(unix.SYS_LANDLOCK_CREATE_RULESET, -1, 0, sandbox.FailWith(unix.EOPNOTSUPP)))
	case "abi":
		version, err := strconv.Atoi(value)
		check(err)
		runtime.GOMAXPROCS(2) // the thread that asks does not make room for the one that answers
		answer(install(sandbox.OuterFilter(unix.SYS_LANDLOCK_CREATE_RULESET, 2, landlockVersion, unix.SECCOMP_RET_USER_NOTIF)), version)
	case "seccomp":
		install(sandbox.OuterFilter(unix.SYS_SECCOMP, -1, 0, none))
	case "mounts":
		install(sandbox.OuterFilter(unix.SYS_FSMOUNT, -1, 0, sandbox.FailWith(unix.EPERM)))
	}
	fmt.Println("missing:", strings.Join(sandbox.Probe().Missing(), ", "))
	s, err := sandbox.Prepare(sandbox.Profile{Read: []string{"/usr", "/bin", "/lib", "/lib64"}, Write: []string{os.Getenv("SANDBOX_TEST_DIR")}},
		sandbox.Program{Path: "/bin/touch", Argv: []string{"touch", "ran"}, Dir: os.Getenv("SANDBOX_TEST_DIR")})
	check(err)
	attr := &syscall.SysProcAttr{}
	s.Attributes(attr)
	p, err := os.StartProcess(s.Path, s.Argv, &os.ProcAttr{Env: s.Env, Files: append([]*os.File{nil, nil, nil}, s.Files...), Sys: attr})
	if err == nil {
		err = s.Started()
		_, _ = p.Wait()
	}
	fmt.Println("error:", err)
}

func check(err error) {
	if err != nil {
		fmt.Println("cannot pretend:", err)
		os.Exit(1)
	}
}

// install installs a filter and returns its listener, if it has one.
func install(filter []byte) int {
	check(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	program := unix.SockFprog{Len: uint16(len(filter) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(&filter[0]))}
	flags := uintptr(0)
	if strings.Contains(string(filter), "\x00\x00\xc0\x7f") { // SECCOMP_RET_USER_NOTIF
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		check(errno)
	}
	return int(fd)
}

// answer answers every notification of a filter with a number while the process
// lives. The filter does not apply to its thread.
func answer(listener, value int) {
	ready := make(chan bool)
	go func() {
		runtime.LockOSThread()
		close(ready)
		for {
			var question [80]byte // struct seccomp_notif
			if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&question))); errno != 0 {
				continue
			}
			reply := struct {
				id           uint64
				value        int64
				errno, flags int32
			}{id: *(*uint64)(unsafe.Pointer(&question)), value: int64(value)}
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&reply)))
		}
	}()
	<-ready
}

func TestKernelsWithoutFeatures(t *testing.T) {
	needFull(t)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for kernel, want := range map[string]string{
		"namespaces": "user namespaces (the limit user.max_user_namespaces is reached)",
		"landlock":   "Landlock (not enabled in this kernel)",
		"abi=1":      "Landlock (version 1; 6 is needed",
		"abi=3":      "Landlock (version 3; 6 is needed",
		"abi=5":      "Landlock (version 5; 6 is needed",
		"seccomp":    "seccomp (function not implemented)",
		"mounts":     "mounting /proc: operation not permitted",
	} {
		t.Run(kernel, func(t *testing.T) {
			dir := t.TempDir()
			cmd := osexec.CommandContext(t.Context(), binary)
			cmd.Env = append(os.Environ(), "SANDBOX_TEST_ROLE="+kernel, "SANDBOX_TEST_DIR="+dir)
			if kernel == "namespaces" {
				// The limit belongs to a namespace whose creator is its root. Its ids are
				// mapped from here, because a process with protected memory cannot do that.
				check(unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0))
				cmd.SysProcAttr = &syscall.SysProcAttr{
					Cloneflags:  unix.CLONE_NEWUSER,
					UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
					GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
				}
			}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			missing, ran, _ := strings.Cut(string(out), "\n")
			if !strings.Contains(missing, want) {
				t.Errorf("%q is not in %q", want, missing)
			}
			if strings.TrimSpace(ran) == "error: <nil>" {
				t.Error("a program was started")
			}
			if _, err := os.Lstat(dir + "/ran"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the program ran: %v", err)
			}
			t.Log(string(out))
		})
	}
}

func TestFailedStepIsNamed(t *testing.T) {
	needFull(t)
	p := newPlace(t)
	profile := p.profile()
	folder, err := os.Open(p.workspace)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	// The working directory is replaced before the start.
	if err := os.Rename(p.workspace, p.workspace+"-old"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, p.workspace+"/file", "")
	t.Cleanup(func() { _ = os.RemoveAll(p.workspace + "-old") })
	_, err = process.Run(t.Context(), process.Spec{
		Argv: []string{"/bin/touch", "ran"}, Env: p.environ(), Dir: p.workspace, Folder: folder, Confine: &profile,
	})
	var failed *sandbox.Error
	if !errors.As(err, &failed) || !strings.Contains(failed.Step, "which was replaced") {
		t.Errorf("%v", err)
	}
}
