package process

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// Open starts a program that keeps running after toolreg ends, such as the
// person's browser: in its own session and without standard streams. It ignores
// Stdin, MaxOutput, Keep, Grace, Linger and Output of the Spec. Because
// failures occur early, it watches the program for a while: the error is a
// *[StartError] or describes the failure, and nil once watch is over or the
// program has exited successfully. If ctx ends first, the error is its cause.
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

// goingOn has the sessions of programs that keep running after toolreg ends. It
// is global like the kernel's list of children, to which it adds this
// information.
var goingOn sync.Map

// GoesOn excludes the session of a child, with everything started in it, from
// being killed when toolreg ends.
func GoesOn(session int) { goingOn.Store(session, true) }
