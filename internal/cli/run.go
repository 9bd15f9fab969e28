package cli

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/terminal"
)

// Program is what does not change from run to run.
type Program struct {
	Version  string
	Commands []Group // in the order of the help
	// Pick is what the program does without a command where a person is at the
	// terminal; elsewhere that is the help.
	Pick func(context.Context, *Env) error
}

// Run executes one command line and returns its exit code. It listens to the
// signals that end the program, the second one of which ends it at once.
func (p Program) Run(ctx context.Context, argv []string, s Streams, environ []string) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := endingSignals()
	ctx, stop := signal.NotifyContext(ctx, signals...)
	defer stop()
	done := make(chan struct{})
	defer close(done)
	unwatch := context.AfterFunc(ctx, func() { endAtOnce(done, signals, stop) })
	defer unwatch()
	// A reader that went away shows as a failed write, so that children are
	// ended in order, not by the signal's default.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE)

	e := newEnv(p.Version, s, environ)
	e.Argv = argv
	e.Globals.JSON = wantsJSON(argv, e.Getenv("TOOLREG_JSON")) || e.Getenv("TOOLREG_JQ") != "" // until the flags are read
	e.In = cancellable(ctx, s.In)
	e.pipe = &pipeWriter{w: s.Out.Unescaped(), gone: func() { cancel(errReaderGone) }}
	e.Out = terminal.NewWriter(e.pipe)
	if s.OutTTY {
		e.Out = terminal.NewWriter(e.Screen.Results(e.pipe))
	}
	if err := checkDescriptors(); err != nil {
		return e.finish(ctx, err)
	}
	if len(argv) == 0 || argv[0] != KeepCommand { // what that starts is not its own
		process.Adopt()
		defer process.EndOrphans()
	}
	root := newRootCommand(e, &p)
	root.SetArgs(argv)
	err := cmp.Or(root.ExecuteContext(ctx), e.unhelped)
	e.close()
	if err == nil {
		err = e.Out.Flush()
	}
	e.showPage(ctx, func() { // Ctrl-C is the pager's
		unwatch()
		stop()
		signal.Notify(ignored, os.Interrupt)
		ctx = context.WithoutCancel(ctx)
	})
	if err == nil {
		err = e.pipe.failure()
	}
	if e.summary != "" && err == nil {
		e.NoteSpans(terminal.Span{Text: terminal.Line(e.summary), Style: terminal.Dim})
	}
	return e.finish(ctx, err)
}

// RunCommand runs another command in place of the one that runs, with its global
// flags, reports its error and returns whether it succeeded. The settings are
// read anew.
func (e *Env) RunCommand(ctx context.Context, argv ...string) bool {
	ours := e.command
	defer func() { e.command, e.loaded = ours, loaded{} }()
	e.loaded = loaded{}
	root := ours.Root()
	root.SetArgs(argv)
	return e.finish(ctx, root.ExecuteContext(ctx)) == ExitOK
}

// endingSignals lists the signals that end the program: SIGHUP not where it is
// ignored, as nohup has it.
func endingSignals() []os.Signal {
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
