package process

import (
	"cmp"
	"context"
	"os"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/tracing"
)

// Run starts the program, waits for it to exit and for its pipes to be closed,
// and returns the outcome. The error is a *[StartError], [ErrOutputLimit], or
// the cause of ctx; a non-zero exit code is not an error. When Run returns, the
// process group is gone. With ErrOutputLimit and the cause of ctx, the outcome
// contains the output so far.
func Run(ctx context.Context, spec Spec) (Outcome, error) {
	if ctx.Err() != nil {
		return Outcome{ExitCode: -1}, context.Cause(ctx)
	}
	spec.Env = tracing.Environ(ctx, spec.Env)
	child, ends, err := begin(spec, spec.Stdin != nil)
	if err != nil {
		return Outcome{ExitCode: -1}, err
	}
	r := &running{
		child:  child,
		ends:   ends,
		spec:   spec,
		stdout: newCapture(spec.maxOutput(), spec.Keep),
		stderr: newCapture(spec.maxOutput(), spec.Keep),
		over:   make(chan struct{}),
	}
	return r.run(ctx)
}

// running is the state of one Run.
type running struct {
	child          *launched
	ends           *pipes
	spec           Spec
	stdout, stderr *capture
	output         sync.Mutex // one call of spec.Output at a time
	over           chan struct{}
	overOnce       sync.Once
}

func (r *running) run(ctx context.Context) (Outcome, error) {
	go r.child.await()
	drained := make(chan struct{})
	var readers, writer sync.WaitGroup
	readers.Go(func() { r.read(1, r.ends.stdout, r.stdout) })
	readers.Go(func() { r.read(2, r.ends.stderr, r.stderr) })
	go func() {
		readers.Wait()
		close(drained)
	}()
	if r.ends.stdin != nil {
		writer.Go(func() {
			// A child need not read its input, so EPIPE is ignored.
			_, _ = r.ends.stdin.Write(r.spec.Stdin)
			_ = r.ends.stdin.Close()
		})
	}

	err := r.wait(ctx, drained)

	r.child.finish()
	limitReading(r.ends.stdout)
	limitReading(r.ends.stderr)
	<-drained
	r.ends.closeOurs()
	writer.Wait()
	return r.outcome(), err
}

// wait returns when the child has exited and its pipes are closed, or when it
// is time to kill the rest of the group.
func (r *running) wait(ctx context.Context, drained <-chan struct{}) (err error) {
	exited, canceled := r.child.exited, ctx.Done()
	var timer <-chan time.Time
	for exited != nil || drained != nil {
		select {
		case <-drained:
			drained = nil
		case <-exited:
			exited = nil
			if err == nil {
				timer = time.After(cmp.Or(r.spec.Linger, DefaultLinger))
			}
		case <-canceled:
			canceled, err = nil, context.Cause(ctx)
			r.child.terminate()
			timer = time.After(cmp.Or(r.spec.Grace, DefaultGrace))
		case <-r.over:
			return ErrOutputLimit
		case <-timer:
			return err
		}
	}
	return r.overOr(err)
}

// overOr returns ErrOutputLimit if a limit was exceeded, and err otherwise:
// when a child exits, several channels may be ready at once.
func (r *running) overOr(err error) error {
	select {
	case <-r.over:
		return ErrOutputLimit
	default:
		return err
	}
}

func (r *running) read(stream int, f *os.File, into *capture) {
	copyChunks(f, func(p []byte) {
		if !into.add(p) {
			r.overOnce.Do(func() { close(r.over) })
		}
		if r.spec.Output != nil {
			r.output.Lock()
			defer r.output.Unlock()
			r.spec.Output(stream, p)
		}
	})
}

func (r *running) outcome() Outcome {
	var o Outcome
	var cutOut, cutErr bool
	o.Stdout, o.StdoutHead, cutOut = r.stdout.result()
	o.Stderr, o.StderrHead, cutErr = r.stderr.result()
	o.Truncated = cutOut || cutErr
	o.StdoutBytes, o.StderrBytes = r.stdout.total, r.stderr.total
	o.ExitCode, o.Signal = r.child.exit()
	if r.child.sandbox != nil {
		o.Refused = r.child.sandbox.Refused()
	}
	o.PID = r.child.cmd.Process.Pid
	return o
}
