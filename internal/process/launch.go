package process

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	osexec "os/exec"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/sandbox"
)

// launched is a running child with its group.
type launched struct {
	cmd     *osexec.Cmd
	sandbox *sandbox.Start // nil means not confined
	group   group
	mark    string        // mark identifies processes to kill with the child
	log     string        // path of the log of [sandbox.Names]; "" means none
	exited  chan struct{} // closed when the child has exited; its pid is not yet free
	status  *int          // of a confined program, set before exited is closed; nil means use the command's

	mu     sync.Mutex // orders signals before reaping, so that none hits a reused pid
	reaped bool
	over   bool // finish was called
	guard  *guard
	age    *time.Timer // starts the guard; nil means guarded from the beginning
}

// launch starts cmd in its own session and group. mark is in its environment. If
// guarded is true, the guard starts before cmd. The error is not wrapped. The
// caller must call await.
func launch(cmd *osexec.Cmd, confined *sandbox.Start, mark, log string, guarded bool) (*launched, error) {
	l := &launched{cmd: cmd, sandbox: confined, mark: mark, log: log, exited: make(chan struct{})}
	if guarded {
		l.guard = startGuard(mark, log)
	}
	l.group.prepare(cmd)
	forking.enter()
	if err := l.start(); err != nil {
		l.group.close()
		forking.leave()
		l.guard.dismiss()
		return nil, err
	}
	l.guard.watch(cmd.Process.Pid)
	l.group.adopt(cmd.Process)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !guarded {
		l.age = time.AfterFunc(guardAfter, l.protect)
	}
	return l, nil
}

// protect gives the child a guard.
func (l *launched) protect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.guard = startGuard(l.mark, l.log)
		l.guard.watch(l.cmd.Process.Pid)
	}
}

// release stops the guard while its pid still belongs to the child.
func (l *launched) release() {
	l.mu.Lock()
	l.over = true
	if l.age != nil {
		l.age.Stop()
	}
	g := l.guard
	l.guard = nil
	l.mu.Unlock()
	g.dismiss()
}

// start starts the command. In a sandbox the command is the launcher, and start
// returns when the program runs in it. The launcher keeps running until the
// group is killed or the program and all its descendants have exited.
func (l *launched) start() error {
	if l.sandbox == nil {
		return forking.do(l.cmd.Start)
	}
	l.sandbox.Attributes(l.cmd.SysProcAttr)
	if err := forking.do(l.cmd.Start); err != nil {
		var path *fs.PathError // it names the launcher, which is irrelevant
		if errors.As(err, &path) {
			err = path.Err
		}
		return &sandbox.Error{Step: "creating namespaces", Err: err}
	}
	err := l.sandbox.Started()
	if err != nil {
		_ = l.cmd.Process.Kill()
		_ = l.cmd.Wait() // the launcher failed; its exit status is irrelevant
	}
	return err
}

// await returns when the program has exited. It is called once.
func (l *launched) await() {
	defer close(l.exited)
	if l.sandbox != nil {
		if status, ok := l.sandbox.Ended(); ok {
			l.status = &status
			return
		}
	}
	awaitExit(l.cmd)
}

// exit returns how the program exited. It must have been reaped.
func (l *launched) exit() (code int, signal string) {
	if l.status != nil {
		return describeStatus(*l.status)
	}
	return exitOf(l.cmd)
}

// terminate sends SIGTERM to the whole group.
func (l *launched) terminate() { l.signal(l.group.terminate) }

// kill sends SIGKILL to the whole group.
func (l *launched) kill() { l.signal(l.group.kill) }

func (l *launched) signal(send func(pid int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.reaped {
		send(l.cmd.Process.Pid)
	}
}

// finish kills the rest of the group and reaps the child. It returns when both
// are gone.
func (l *launched) finish() {
	l.kill()
	l.release()
	<-l.exited
	l.reap()
	l.group.awaitGone(l.cmd.Process.Pid)
	endMarkedOrphans(l.mark)
	if l.sandbox != nil {
		l.sandbox.Close()
	}
}

func (l *launched) reap() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.reaped {
		_ = l.cmd.Wait() // the process state has the result
		l.reaped = true
		l.group.close()
		forking.leave()
	}
}

// newCommand resolves the program. The caller sets the streams.
func newCommand(s Spec) (*osexec.Cmd, error) {
	path, err := s.Program()
	if err != nil {
		return nil, err
	}
	cmd := &osexec.Cmd{
		Path:       path,
		Args:       slices.Clone(s.Argv),
		Dir:        FolderPath(s.Folder, s.Dir),
		Env:        absolutePATH(s.Env),
		ExtraFiles: s.Files,
	}
	if err := interpret(cmd); err != nil {
		return nil, &StartError{Program: s.Argv[0], Err: err}
	}
	return cmd, nil
}

// pipes holds both ends of a child's streams. Call closeTheirs after the start,
// successful or not, and closeOurs after a failed start.
type pipes struct {
	stdin          *os.File // ours, nil for /dev/null
	stdout, stderr *os.File // ours
	theirs         []*os.File
}

func connect(cmd *osexec.Cmd, withStdin bool) (*pipes, error) {
	p := &pipes{}
	var err error
	if withStdin {
		var theirs *os.File
		if theirs, p.stdin, err = os.Pipe(); err == nil {
			cmd.Stdin = theirs
			p.theirs = append(p.theirs, theirs)
		}
	}
	if err == nil {
		p.stdout, err = p.output(&cmd.Stdout)
	}
	if err == nil {
		p.stderr, err = p.output(&cmd.Stderr)
	}
	if err != nil {
		p.closeTheirs()
		p.closeOurs()
		return nil, err
	}
	return p, nil
}

func (p *pipes) output(stream *io.Writer) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	*stream = w
	p.theirs = append(p.theirs, w)
	return r, nil
}

func (p *pipes) closeTheirs() { closeAll(p.theirs...) }
func (p *pipes) closeOurs()   { closeAll(p.stdin, p.stdout, p.stderr) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // pipe ends have no buffer to flush
		}
	}
}

// begin resolves, connects and starts a child. The error is a *StartError.
func begin(s Spec, withStdin bool) (*launched, *pipes, error) {
	cmd, err := newCommand(s)
	if err != nil {
		return nil, nil, err
	}
	p, err := connect(cmd, withStdin)
	if err != nil {
		return nil, nil, &StartError{Program: s.Argv[0], Err: err}
	}
	mark := rand.Text()
	cmd.Env = append(cmd.Env, MarkVariable+"="+mark)
	path := cmd.Path
	confined, err := confine(cmd, s)
	var l *launched
	if err == nil {
		l, err = launch(cmd, confined, mark, s.log(), s.Guard)
	}
	p.closeTheirs()
	switch {
	case err == nil:
		return l, p, nil
	case s.Confine == nil:
		err = explain(err, path, cmd.Dir)
	default:
		err = explainConfined(err, path, s.Dir)
	}
	if confined != nil {
		confined.Close()
	}
	p.closeOurs()
	return nil, nil, &StartError{Program: s.Argv[0], Err: err}
}

// reading limits how long readers may take to empty a pipe after its group is
// dead. Only a program that left the group can keep it open longer.
const reading = 200 * time.Millisecond

// limitReading makes reads from f end soon, even if another process has the
// other end open.
func limitReading(f *os.File) { _ = f.SetReadDeadline(time.Now().Add(reading)) }

// forking is the thread that starts all children. On Linux the signal that kills
// a child with its parent (Pdeathsig) is sent when the thread that forked it
// ends, not the process, so the thread has to live as long as any child. All
// children share one thread because starting a thread takes longer than most
// uses of it.
var forking forkThread

type forkThread struct {
	mu    sync.Mutex
	users int
	work  chan func()
}

// enter keeps the thread alive until leave is called.
func (t *forkThread) enter() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users++; t.users == 1 {
		t.work = make(chan func())
		go runLocked(t.work)
	}
}

func (t *forkThread) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users == 0 {
		close(t.work)
	}
}

// do runs f on the thread, between enter and leave.
func (t *forkThread) do(f func() error) error {
	t.mu.Lock()
	work := t.work
	t.mu.Unlock()
	done := make(chan error, 1)
	work <- func() { done <- f() }
	return <-done
}

func runLocked(work <-chan func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for f := range work {
		f()
	}
}

// Prepare does work in the background that the first start of a child would
// otherwise wait for.
func Prepare() {
	forking.enter()
	go func() {
		defer forking.leave()
		// Package os starts a process once to learn what the kernel supports.
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Release()
		}
	}()
}

// confine makes cmd start the launcher of a sandbox if the spec requires a
// sandbox; otherwise it returns nil.
func confine(cmd *osexec.Cmd, s Spec) (*sandbox.Start, error) {
	if s.Confine == nil {
		return nil, nil
	}
	start, err := sandbox.Prepare(*s.Confine, sandbox.Program{
		Path: cmd.Path, Argv: cmd.Args, Env: cmd.Env, Dir: absolute(s.Dir), Folder: s.Folder,
	})
	if err != nil {
		return nil, err
	}
	cmd.Path, cmd.Args, cmd.Env, cmd.ExtraFiles = start.Path, start.Argv, start.Env, start.Files
	return start, nil
}

// log returns the path of the log of the names that a sandboxed program uses; "" if there is
// none.
func (s *Spec) log() string {
	if s.Confine == nil || s.Confine.Created == nil || s.Confine.Created.Log == nil {
		return ""
	}
	return s.Confine.Created.Log.Name()
}

// explainConfined is explain for a program that could not be started in a sandbox.
func explainConfined(err error, path, dir string) error {
	if _, ok := errors.AsType[*sandbox.Error](err); ok {
		return err
	}
	if _, statErr := os.Stat(path); statErr == nil &&
		(errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
		return &reason{text: "the sandbox hides " + path +
			", or a file that it needs to start; add its folder to the setting read", cause: err}
	}
	return explain(err, path, dir)
}
