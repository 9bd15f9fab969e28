// Command toolreg turns every tool that an LLM agent may use into one registry:
// it lists them, declares them to model providers and runs them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/toolreg/toolreg/internal/process"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(run(context.Background(), os.Args[1:], streams{
		in: os.Stdin, out: os.Stdout, stdout: os.Stdout, err: os.Stderr,
		inTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		outTTY: term.IsTerminal(int(os.Stdout.Fd())),
		errTTY: term.IsTerminal(int(os.Stderr.Fd())),
	}, os.Environ()))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, argv []string, s streams, environ []string) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := ending()
	ctx, stop := signal.NotifyContext(ctx, signals...)
	defer stop()
	done := make(chan struct{})
	defer close(done)
	defer context.AfterFunc(ctx, func() { endAtOnce(done, signals, stop) })()
	// A reader that went away shows as a failed write, so that children are
	// ended in order, not by the signal's default.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE)

	s.in = &patientReader{newPatience(ctx), s.in}
	out := &pipeWriter{w: s.out, gone: func() { cancel(errReaderGone) }}
	s.out = out
	a := newApp(s, environ)
	if s.outTTY {
		a.out = &screenWriter{app: a, w: out}
	}
	a.patience = newPatience(ctx)
	if err := checkDescriptors(); err != nil {
		return a.finish(ctx, err, out)
	}
	root := newRootCommand(a)
	root.SetArgs(argv)
	err := root.ExecuteContext(ctx)
	if closeErr := a.close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = out.failure()
	}
	return a.finish(ctx, err, out)
}

// ending lists the signals that end the program: SIGHUP not where it is ignored,
// as nohup has it.
func ending() []os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return []os.Signal{os.Interrupt, syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
}

// endAtOnce ends the process at the second signal, as that signal does by
// default, and with it the children that the first one is still asking to end.
func endAtOnce(done <-chan struct{}, signals []os.Signal, stop func()) {
	second := make(chan os.Signal, 1)
	signal.Notify(second, signals...)
	stop()
	select {
	case sig := <-second:
		process.KillChildren()
		signal.Reset(sig)
		self, err := os.FindProcess(os.Getpid())
		if err != nil { // our own process is there
			return
		}
		_ = self.Signal(sig)
		time.Sleep(100 * time.Millisecond) // a shell's background job ignores SIGINT by default
		_ = self.Kill()
	case <-done:
	}
}
