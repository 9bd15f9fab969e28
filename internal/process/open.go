package process

import (
	"context"
	"fmt"
	"io"
	osexec "os/exec"
	"time"

	"github.com/toolreg/toolreg/internal/text"
)

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
