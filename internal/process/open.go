package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
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
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return &StartError{Program: spec.Argv[0], Err: err}
	}
	defer null.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, null, null
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return &StartError{Program: spec.Argv[0], Err: explain(err, cmd.Path, spec.Dir)}
	}
	GoesOn(cmd.Process.Pid)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // reap it, so that no zombie remains
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
	failed := func(err error) error {
		return &StartError{Program: spec.Argv[0], Err: explain(err, cmd.Path, spec.Dir)}
	}
	p, err := connect(cmd, true)
	if err != nil {
		return nil, failed(err)
	}
	defer p.closeOurs()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		p.closeTheirs()
		return nil, failed(err)
	}
	defer null.Close()
	cmd.Stderr = null
	detach(cmd)
	err = cmd.Start()
	p.closeTheirs()
	if err != nil {
		return nil, failed(err)
	}
	GoesOn(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }() // reap it, so that no zombie remains
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
		return nil, failed(err)
	}
	return output, nil
}
