package process

import (
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a job object. All processes that the child starts belong to it, and
// it is killed when its last handle is closed, at the latest when toolreg
// exits.
type group struct {
	job   windows.Handle // 0 if it could not be created; then only the child is stopped
	child *os.Process
}

// interpret lets cmd.exe run a batch file, with its arguments quoted.
func interpret(cmd *osexec.Cmd) error {
	if !isBatch(cmd.Path) {
		return nil
	}
	line, err := batchLine(cmd.Path, cmd.Args[1:])
	if err != nil {
		return err
	}
	system, err := windows.GetSystemDirectory()
	if err != nil {
		return err
	}
	cmd.Path, cmd.SysProcAttr = filepath.Join(system, "cmd.exe"), &syscall.SysProcAttr{CmdLine: line}
	return nil
}

func (g *group) prepare(cmd *osexec.Cmd) {
	flags(cmd, windows.CREATE_NEW_PROCESS_GROUP|windows.CREATE_NO_WINDOW)
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return
	}
	g.job = job
}

func (g *group) adopt(p *os.Process) {
	g.child = p
	if g.job == 0 {
		return
	}
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
	if err != nil {
		return
	}
	defer windows.CloseHandle(h)
	_ = windows.AssignProcessToJobObject(g.job, h)
}

// terminate sends Ctrl-Break, which is the closest to SIGTERM on Windows.
func (g *group) terminate(pid int) {
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(pid))
}

func (g *group) kill(int) {
	if g.job != 0 {
		_ = windows.TerminateJobObject(g.job, 1)
	}
	_ = g.child.Kill()
}

func (*group) awaitGone(int) {}

func (g *group) close() {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
		g.job = 0
	}
}

// awaitExit blocks until the child has exited. Windows signals through handles,
// so a reused pid cannot be hit.
func awaitExit(cmd *osexec.Cmd) { _ = cmd.Wait() }

func exitOf(cmd *osexec.Cmd) (code int, signal string) { return cmd.ProcessState.ExitCode(), "" }

func isFormatError(err error) bool { return errors.Is(err, windows.ERROR_BAD_EXE_FORMAT) }

// KillChildren does nothing: a job is killed when toolreg, which has the last
// handle to it, exits.
func KillChildren() {}

// describeStatus is unused: this system has no launcher.
func describeStatus(int) (code int, signal string) { return -1, "" }

// detach makes a program outlive toolreg.
func detach(cmd *osexec.Cmd) { flags(cmd, windows.CREATE_NEW_PROCESS_GROUP|windows.DETACHED_PROCESS) }

// flags sets how a process is created.
func flags(cmd *osexec.Cmd, flags uint32) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags = flags
}

// CloseStreams closes stdin and stdout, for a program that [Detach] has started.
func CloseStreams() error { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

// GroupIsAlive cannot tell on this system.
func GroupIsAlive(int) bool { return false }
