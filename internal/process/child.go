package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolreg/toolreg/internal/text"
)

// stderrTail is how much of a long-lived child's stderr is kept, in bytes.
const stderrTail = 8 << 10

// Child is a running program with open stdin and stdout in its own session and
// process group. Stderr is always drained; the last 8 KiB are kept.
//
// Stdout ends with io.EOF when the child and its group are gone; earlier output
// can still be read. Closing Stdin or Stdout unblocks a write or read in
// progress. The caller must always call Stop.
type Child struct {
	Stdin  io.WriteCloser
	Stdout io.ReadCloser

	launched *launched
	ends     *pipes
	done     chan struct{}

	mu     sync.Mutex
	stderr *capture
}

// Start starts a long-lived child (an MCP server). It ignores Spec.Stdin,
// MaxOutput, Keep, Grace and Linger. Spec.Output receives only stderr. When the
// child exits, the rest of its group is killed. The error is a *[StartError].
func Start(spec Spec) (*Child, error) {
	l, ends, err := begin(spec, true)
	if err != nil {
		return nil, err
	}
	c := &Child{
		Stdin:    ends.stdin,
		Stdout:   &childStdout{ends.stdout},
		launched: l,
		ends:     ends,
		done:     make(chan struct{}),
		stderr:   &capture{tailMax: stderrTail},
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		copyChunks(ends.stderr, func(p []byte) { c.addStderr(p, spec.Output) })
	}()
	go c.watch(drained)
	return c, nil
}

func (c *Child) addStderr(p []byte, output func(int, []byte)) {
	c.mu.Lock()
	c.stderr.add(p)
	c.mu.Unlock()
	if output != nil {
		output(2, p)
	}
}

// watch waits for the child to exit and cleans up.
func (c *Child) watch(drained <-chan struct{}) {
	c.launched.await()
	c.launched.finish()
	limitReading(c.ends.stdout)
	limitReading(c.ends.stderr)
	<-drained // so that the tail is complete when Done is closed
	_ = c.ends.stderr.Close()
	close(c.done)
}

// PID returns the child's process id, which is also that of its group.
func (c *Child) PID() int { return c.launched.cmd.Process.Pid }

// Done is closed when the child has exited and was reaped. Exit and StderrTail
// are then final.
func (c *Child) Done() <-chan struct{} { return c.done }

// Exit returns how the child exited, such as "exit status 1" or "signal:
// SIGKILL"; "" while it runs.
func (c *Child) Exit() string {
	select {
	case <-c.done:
	default:
		return ""
	}
	code, signal := c.launched.exit()
	if signal != "" {
		return "signal: " + signal
	}
	return "exit status " + strconv.Itoa(code)
}

// StderrTail returns the last lines of stderr, at most 8 KiB, as valid UTF-8.
// It omits a first line that was cut.
func (c *Child) StderrTail() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := text.Valid(c.stderr.last())
	if c.stderr.total > stderrTail {
		if _, rest, ok := strings.Cut(tail, "\n"); ok && rest != "" {
			return rest
		}
	}
	return tail
}

// Stop ends the child and its whole group: it closes stdin, waits for quiet or
// until the child is idle, sends SIGTERM to the group, waits for grace, and
// sends SIGKILL. It returns when the child is reaped, and closes Stdout. It may
// be called more than once and from several goroutines.
func (c *Child) Stop(quiet, grace time.Duration) {
	// A process that is being started has a copy of the pipe, so that the child would look idle.
	syscall.ForkLock.RLock()
	_ = c.ends.stdin.Close()
	syscall.ForkLock.RUnlock()
	if !c.endsUnlessIdle(quiet) {
		c.launched.terminate()
		if !c.endsWithin(grace) {
			c.launched.kill()
		}
	}
	<-c.done
	_ = c.ends.stdout.Close()
}

// endsUnlessIdle waits at most d for the child to exit. It returns early if the child
// and its descendants are idle at two checks in a row: a program that exits because
// its stdin was closed would be busy.
func (c *Child) endsUnlessIdle(d time.Duration) bool {
	const look = 2 * time.Millisecond
	last, idle := int64(-1), 0
	for range d / look {
		if c.endsWithin(look) {
			return true
		}
		ran, busy := runTime(c.PID())
		if busy || ran != last {
			last, idle = ran, 0
			continue
		}
		if idle++; idle == 2 {
			return false
		}
	}
	return false
}

func (c *Child) endsWithin(d time.Duration) bool {
	select {
	case <-c.done:
		return true
	case <-time.After(d):
		return false
	}
}

// childStdout is the stdout of a child. Any read error becomes io.EOF.
type childStdout struct{ *os.File }

func (s *childStdout) Read(p []byte) (int, error) {
	n, err := s.File.Read(p)
	if err != nil && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed)) {
		err = io.EOF
	}
	return n, err
}

// Open starts a program that keeps running after toolreg exits, such as the
// user's browser, in its own session and without standard streams. It ignores
// Stdin, MaxOutput, Keep, Grace, Linger and Output of the Spec. Open watches
// the program for failures for the duration watch. The error is a
// *[StartError], describes the failure, or is the cause of ctx if ctx ends
// first; it is nil if the program still runs after watch or has exited
// successfully.
func Open(ctx context.Context, spec Spec, watch time.Duration) error {
	cmd, err := newCommand(spec)
	if err != nil {
		return err
	}
	ended, err := startDetached(cmd, spec)
	if err != nil {
		return err
	}
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s failed (%w)", spec.Argv[0], err)
		}
		return nil
	case <-time.After(watch):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startDetached starts a program that keeps running after toolreg exits. Streams that cmd does not
// have are /dev/null. The channel receives the error of its end. The error is a *[StartError].
func startDetached(cmd *osexec.Cmd, spec Spec) (ended <-chan error, err error) {
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, &StartError{Program: spec.Argv[0], Err: explain(err, cmd.Path, spec.Dir)}
	}
	GoesOn(cmd.Process.Pid)
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }() // reap it, so that no zombie remains
	return waited, nil
}

// Detach starts a program that keeps running after toolreg exits, in its own session. It
// writes input to the program's stdin and returns what the program writes to its stdout
// before it closes it, at most 4 KiB. Stderr is /dev/null. Only Argv, Dir and Env of the
// Spec are used. The error is a *[StartError], or the cause of ctx, which the program
// survives.
func Detach(ctx context.Context, spec Spec, input []byte) (output []byte, err error) {
	cmd, err := newCommand(spec)
	if err != nil {
		return nil, err
	}
	p, err := connect(cmd, true)
	if err != nil {
		return nil, &StartError{Program: spec.Argv[0], Err: err}
	}
	defer p.closeOurs()
	cmd.Stderr = nil
	_, err = startDetached(cmd, spec)
	p.closeTheirs()
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { p.closeOurs() })()
	if _, err = p.stdin.Write(input); err == nil {
		err = p.stdin.Close()
	}
	if err == nil {
		output, err = io.ReadAll(io.LimitReader(p.stdout, 4<<10))
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, &StartError{Program: spec.Argv[0], Err: text.Cause(err)}
	}
	return output, nil
}
