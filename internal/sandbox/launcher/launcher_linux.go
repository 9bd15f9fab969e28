//go:build amd64 || arm64

package launcher

import (
	"syscall"
	"unsafe"
)

// init takes over in a process that was started as a launcher; see the package
// comment. In every other process it costs two system calls: only process 1 of a
// process namespace, or the leader of a session, can be a launcher.
func init() {
	pid := syscall.Getpid()
	if pid != 1 && !leadsSession(pid) || !calledAsLauncher() {
		return
	}
	if pid != 1 {
		syscall.Exit(joinNamespaces())
	}
	syscall.Exit(run())
}

func leadsSession(pid int) bool {
	session, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	return int(session) == pid
}

// calledAsLauncher reports whether argv[0] is Name. Package os, which knows it,
// must not be imported.
func calledAsLauncher() bool {
	fd, err := openFile("/proc/self/cmdline")
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	var buf [len(Name) + 1]byte
	n, _ := syscall.Read(fd, buf[:])
	return n == len(buf) && string(buf[:]) == Name+"\x00"
}

// run sets up the sandbox, runs the program and returns the exit code. During
// init functions the runtime locks the goroutine to the main thread, which is
// the thread that is confined and starts the program.
func run() int {
	syscall.CloseOnExec(PlanFD)
	syscall.CloseOnExec(StatusFD)
	pid, mounts, f := start()
	if f != nil {
		return reportFailure(f)
	}
	sendReport(Report{Kind: Started}, mounts)
	syscall.Close(mounts)
	if pid == 0 {
		return 0
	}
	for fd := range 3 {
		syscall.Close(fd) // only the program uses the streams
	}
	return reap(pid)
}

// start executes the plan and returns the id of the program, 0 if the plan has
// none, and a descriptor of the mount namespace. Closing its last descriptor
// removes the mounts, which takes the kernel a while, so toolreg does that when
// nothing is waiting for it, instead of this process when it exits.
func start() (pid, mounts int, f *failure) {
	if err := closeFrom(StatusFD + 1); err != nil {
		return 0, 0, fail("closing inherited descriptors", err)
	}
	p, f := readPlan()
	if f != nil {
		return 0, 0, f
	}
	mounts, err := openFile("/proc/self/ns/mnt")
	if err != nil {
		return 0, 0, fail("opening the mount namespace", err)
	}
	var before syscall.Stat_t
	if err := syscall.Stat(".", &before); err != nil && p.SameDir {
		return 0, 0, fail("finding the working directory", err)
	}
	if f := isolate(p); f != nil {
		return 0, 0, f
	}
	if f := enter(p, before); f != nil {
		return 0, 0, f
	}
	if f := applyPlan(p); f != nil || p.Program == "" {
		return 0, mounts, f
	}
	pid, _, err = syscall.StartProcess(p.Program, p.Argv, &syscall.ProcAttr{Env: p.Env, Files: []uintptr{0, 1, 2}})
	return pid, mounts, fail(StepStart, err)
}

func readPlan() (*Plan, *failure) {
	const step = "reading the plan"
	data, err := readAll(PlanFD)
	if err != nil {
		return nil, fail(step, err)
	}
	p, ok := Decode(data)
	if !ok {
		return nil, fail(step, syscall.EBADMSG)
	}
	return p, fail(step, syscall.Close(PlanFD))
}

// enter changes into the working directory and, if the plan requires it, checks
// that it is still the same directory as before.
func enter(p *Plan, before syscall.Stat_t) *failure {
	if err := syscall.Chdir(p.Dir); err != nil {
		return fail("entering the working directory "+p.Dir, err)
	}
	var after syscall.Stat_t
	if err := syscall.Stat(".", &after); p.SameDir &&
		(err != nil || after.Dev != before.Dev || after.Ino != before.Ino) {
		return fail("entering the working directory "+p.Dir+", which was replaced", syscall.ESTALE)
	}
	return nil
}

// isolate turns the namespaces in which the launcher was started into those
// that the program sees.
func isolate(p *Plan) *failure {
	if f := mapUser(p); f != nil {
		return f
	}
	if f := buildRoot(p.Ops); f != nil {
		return f
	}
	if p.Loopback {
		if err := raiseLoopback(); err != nil {
			return fail("setting up the loopback interface", err)
		}
	}
	if p.Shared {
		if f := shareNetwork(); f != nil {
			return f
		}
	}
	for _, port := range p.Listen {
		if f := listen(port); f != nil {
			return f
		}
	}
	return nil
}

// applyPlan gives up all rights that the program must not have. Not even the
// launcher can undo this.
func applyPlan(p *Plan) *failure {
	if f := newKeyring(); f != nil {
		return f
	}
	if f := restrictFiles(p.Rules); f != nil {
		return f
	}
	if f := dropCapabilities(); f != nil {
		return f
	}
	resetSignals()
	if err := prctl(prSetDumpable, 0); err != nil {
		return fail("protecting the memory of the launcher", err)
	}
	return installFilter(p.Filter, p.Watched)
}

// mapUser makes the caller's ids the only ones that the user namespace knows.
func mapUser(p *Plan) *failure {
	const step = "mapping the user into the user namespace"
	if err := writeFile("/proc/self/setgroups", "deny"); err != nil {
		return fail(step, err)
	}
	if err := writeFile("/proc/self/gid_map", itoa(p.GID)+" "+itoa(p.GID)+" 1"); err != nil {
		return fail(step, err)
	}
	return fail(step, writeFile("/proc/self/uid_map", itoa(p.UID)+" "+itoa(p.UID)+" 1"))
}

// resetSignals removes the handlers of Go's runtime: with them, signals to the
// launcher's group, which the kernel delivers to the program too, would end the
// launcher. The first process of a namespace without handlers gets only SIGKILL
// and SIGSTOP, and these only from outside. Ignored signals stay ignored.
func resetSignals() {
	for n := range uintptr(signals) {
		var old action
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, n, 0, uintptr(unsafe.Pointer(&old)), 8, 0, 0)
		if errno == 0 && (old.handler != ignoreSignal || n == uintptr(syscall.SIGCHLD)) {
			setAction(n, &action{})
		}
	}
}

// reap waits for the program and all its descendants. The program is in the
// launcher's process group, so signals to the group reach it directly.
func reap(program int) int {
	code := 1
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, wall, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return code // no children are left
		}
		if pid != program {
			continue
		}
		sendReport(Report{Kind: Ended, Value: int(status)}, -1)
		if code = status.ExitStatus(); status.Signaled() {
			code = 128 + int(status.Signal())
		}
	}
}

type failure struct {
	step string
	err  error
}

// fail returns err as a failure of a step, or nil if err is nil.
func fail(step string, err error) *failure {
	if err == nil {
		return nil
	}
	return &failure{step, err}
}

// reportFailure reports a failure and returns the exit code.
func reportFailure(f *failure) int {
	errno, _ := f.err.(syscall.Errno)
	sendReport(Report{Kind: Failed, Value: int(errno), Step: f.step}, -1)
	return 1
}

// sendReport sends a report, with a descriptor if it is not negative. Errors are
// ignored: if toolreg is gone, the kernel ends the launcher.
func sendReport(r Report, fd int) {
	var rights []byte
	if fd >= 0 {
		rights = syscall.UnixRights(fd)
	}
	_ = syscall.Sendmsg(StatusFD, r.Encode(), rights, nil, syscall.MSG_NOSIGNAL)
}
