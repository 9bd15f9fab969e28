// Command toolreg turns every tool that an LLM agent may use into one registry:
// it lists them, declares them to model providers and runs them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
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
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// The second signal finds no handler and ends the process at once.
	defer context.AfterFunc(ctx, stop)()
	// A reader that went away shows as a failed write, so that children are
	// ended in order, not by the signal's default.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE)

	out := &pipeWriter{w: s.out, gone: func() { cancel(errReaderGone) }}
	s.out = out
	a := newApp(s, environ)
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
