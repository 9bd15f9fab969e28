//go:build unix

package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// keepDrain is how long to wait for remaining output after the command has
// ended. Reading takes that long only if processes that it started still hold
// the pipe open.
const keepDrain = 200 * time.Millisecond

// Keep supervises a background command. It runs in a separate process, which
// [Options].Keeper starts: it runs the command, keeps the end of its output, and
// records its exit code. It returns when no process is left that could write
// output. args are the path of the log, the path of the file for the exit code, the
// number of bytes of output to keep, the path of a file that describes the sandbox
// or "", and the argv of the command, with its program as a path. Keep closes the descriptor
// 3 when later commands can reach servers of this one. It returns an error only for
// invalid args; later errors are written to the log.
func Keep(ctx context.Context, args []string) error {
	if len(args) < 5 {
		return errors.New("internal command of toolreg; usage: LOG EXIT BYTES CONFINE PROGRAM [ARG...]")
	}
	limit, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil || limit < 1 {
		return fmt.Errorf("%q is not a number of bytes", args[2])
	}
	// Ending the command signals the whole group; the keeper must survive to
	// record the last output.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	k := &keeper{log: &rotatingLog{path: args[0], segment: max(limit/2, 1)}, exit: args[1]}
	defer k.log.close()
	ready := os.NewFile(3, "ready")
	defer ready.Close()
	run := k.run
	if args[3] != "" {
		run = func(argv []string) error { return k.runConfined(ctx, args[3], argv, ready) }
	} else {
		ready.Close()
	}
	if err := run(args[4:]); err != nil {
		_, _ = fmt.Fprintln(k.log, err)
		k.publish(127)
	}
	return nil
}

// runConfined is like run, but for a command in the sandbox, which ends together
// with everything that it started.
func (k *keeper) runConfined(ctx context.Context, path string, argv []string, ready io.Closer) error {
	c, err := readConfined(path)
	if err != nil {
		return err
	}
	c.ready = ready
	code, err := c.run(ctx, argv, func(p []byte) { _, _ = k.log.Write(p) }) // a full disk must not affect the command
	if err == nil {
		k.publish(code)
	}
	return err
}

// keeper is the state of one call of Keep.
type keeper struct {
	log  *rotatingLog
	exit string
	once sync.Once
}

func (k *keeper) run(argv []string) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Files: []*os.File{null, in, in}})
	in.Close()
	if err != nil {
		return err
	}
	ended := make(chan int, 1)
	go func() {
		ended <- codeOf(p.Wait())
		_ = out.SetReadDeadline(time.Now().Add(keepDrain))
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := out.Read(buf)
		_, _ = k.log.Write(buf[:n]) // a full disk must not affect the command
		if errors.Is(err, os.ErrDeadlineExceeded) {
			// The command has ended, and processes that it started are still running.
			k.publish(<-ended)
			_ = out.SetReadDeadline(time.Time{})
		} else if err != nil {
			break
		}
	}
	k.once.Do(func() { k.writeExitCode(<-ended) })
	return nil
}

// codeOf returns the exit code as a shell would.
func codeOf(state *os.ProcessState, err error) int {
	if err != nil {
		return 127
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// publish writes the exit code, once.
func (k *keeper) publish(code int) { k.once.Do(func() { k.writeExitCode(code) }) }

// writeExitCode writes the exit code atomically, unless the file exists: the process
// tool writes it for the commands that it kills.
func (k *keeper) writeExitCode(code int) {
	temp := k.exit + ".tmp"
	if err := os.WriteFile(temp, []byte(strconv.Itoa(code)+"\n"), 0o600); err != nil {
		_, _ = fmt.Fprintln(k.log, err)
		return
	}
	if err := os.Link(temp, k.exit); err != nil && !errors.Is(err, os.ErrExist) {
		_, _ = fmt.Fprintln(k.log, err)
	}
	_ = os.Remove(temp)
}

// rotatingLog keeps the end of what is written to it: path has at most one
// segment, path.1 the segment before it, and path.passed the number of bytes
// that are no longer in path.
type rotatingLog struct {
	path    string
	segment int64

	file   *os.File
	size   int64
	passed int64
}

var _ io.Writer = (*rotatingLog)(nil)

func (l *rotatingLog) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		if l.size >= l.segment {
			if err := l.rotate(); err != nil {
				return done, err
			}
		}
		if l.file == nil {
			f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				return done, err
			}
			l.file = f
		}
		n, err := l.file.Write(p[done : done+int(min(int64(len(p)-done), l.segment-l.size))])
		done += n
		l.size += int64(n)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (l *rotatingLog) rotate() error {
	l.close()
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		return err
	}
	l.passed += l.size
	l.size = 0
	return replaceFile(l.path+".passed", []byte(strconv.FormatInt(l.passed, 10)))
}

func (l *rotatingLog) close() {
	if l.file != nil {
		_ = l.file.Close() // every write has already reached the file
		l.file = nil
	}
}
