package process

import (
	"context"
	"fmt"
	"os"
	"sync"
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
	timer := time.NewTimer(watch)
	defer timer.Stop()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s failed (%w)", spec.Argv[0], err)
		}
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// goingOn holds the sessions of programs that keep running after toolreg exits.
// It is global because it extends the kernel's list of children.
var goingOn sync.Map

// GoesOn excludes a child's session and all processes in it from being killed
// when toolreg exits.
func GoesOn(session int) { goingOn.Store(session, true) }
