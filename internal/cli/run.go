// Package cli holds what the commands of toolreg share. [Program.Run] executes one
// command line. It creates an [Env], whose parts read flags and settings ([Config]),
// open the session ([Engine]), print ([IO]), ask questions ([Person]) and know which
// projects are trusted ([Trust]), builds the command with it, and turns the command's
// error into an exit code (exit.go). Each command is a package below this one; package
// commands lists them.
package cli

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/tracing"
	"github.com/toolreg/toolreg/internal/ui"
)

// stuckWrite is how long a write may wait for the reader of stdout once a signal
// has ended the run.
const stuckWrite = 2 * time.Second

// Run executes one command line, given as os.Args, and returns its exit code. It handles the
// signals that end the program; the second one ends it at once.
func (p Program) Run(ctx context.Context, args []string, s Streams, environ []string) int {
	argv := args[1:]
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The signals stay caught until the process ends: registering or releasing one takes
	// about 20 µs, and the first one starts two threads.
	running := ctx.Done()
	out := newPipeWriter(s.Out.Unescaped(), func() { cancel(ErrReaderGone) })
	caught, ignored, watching := make(chan os.Signal, 2), make(chan os.Signal, 1), make(chan struct{})
	go func() {
		signal.Notify(caught, endingSignals()...)
		// If the reader of stdout is gone, writes fail, so that children are
		// stopped in order instead of by the signal's default action.
		signal.Notify(ignored, syscall.SIGPIPE)
		close(watching)
		select {
		case sig := <-caught:
			cancel(errSignal{sig})
			out.WhenStuck(stuckWrite, func() { exitNow(sig) })
		case <-running:
		}
		exitNow(<-caught)
	}()

	if p.Version == "" {
		p.Version = moduleVersion()
	}
	e := newEnv(p.Version, s, environ)
	defer func() { *e = Env{} }() // cobra keeps what completes flags, and thereby e, for ever
	e.Argv, e.Config.CalledAs = argv, args[0]
	// This counts until the flags are parsed.
	e.IO.JSON = wantsJSON(argv, e.Config.Getenv("TOOLREG_JSON")) || e.Config.Getenv("TOOLREG_JQ") != ""
	e.IO.In = cancellable(ctx, s.In)
	e.IO.pipe = out
	e.IO.Out = ui.NewWriter(e.IO.pipe)
	if s.OutTTY {
		e.IO.Out = ui.NewWriter(e.IO.Screen.Results(e.IO.pipe))
	}
	if err := checkDescriptors(); err != nil {
		return e.IO.finish(ctx, err)
	}
	if len(argv) == 0 || argv[0] != KeepCommand { // the processes that it starts must keep running
		process.Adopt()
		defer process.EndOrphans()
	}
	if !isInternal(argv) { // what these do belongs to others than who started them
		ctx = tracing.FromEnviron(ctx, environ)
	}
	root := newRootCommand(e, &p)
	root.SetArgs(argv)
	<-watching
	err := cmp.Or(root.ExecuteContext(ctx), e.helpErr)
	e.Person.close()
	if closeErr := e.Engine.close(ctx); err == nil {
		err = closeErr
	} else if closeErr != nil {
		e.IO.Warn(registry.Diagnostic{Severity: registry.SeverityError,
			Code: "recording_not_written", Message: closeErr.Error()})
	}
	e.IO.Screen.Close()
	if err == nil {
		err = e.IO.Out.Flush()
	}
	e.showPage(ctx, func() { // Ctrl-C is for the pager
		signal.Notify(ignored, os.Interrupt)
		signal.Stop(caught)
		ctx = context.WithoutCancel(ctx)
	})
	if err == nil {
		err = e.IO.pipe.Failure()
	}
	if e.IO.summary != "" && err == nil {
		e.IO.NoteSpans(ui.Span{Text: ui.Line(e.IO.summary), Style: ui.Dim})
	}
	return e.IO.finish(ctx, err)
}

// Tree returns the commands for the generator of the manual. They print their
// help to out and cannot be run.
func (p Program) Tree(out io.Writer) *cobra.Command {
	return newRootCommand(newEnv(p.Version,
		Streams{In: strings.NewReader(""), Out: ui.NewWriter(out), Err: ui.NewWriter(io.Discard)}, nil), &p)
}

// RunCommand runs another command with the global flags of the current one, prints its
// error and reports whether it succeeded. The settings are read again. A command that
// calls it must leave Name of its [Command] empty.
func (e *Env) RunCommand(ctx context.Context, argv ...string) bool {
	ours := e.Config.command
	defer func() { e.Config.command = ours; e.Config.Forget() }()
	e.Config.Forget()
	root := ours.Root()
	root.SetArgs(argv)
	return e.IO.finish(ctx, root.ExecuteContext(ctx)) == ExitOK
}

// endingSignals returns the signals that end the program, without SIGHUP if it
// is ignored, as nohup does.
func endingSignals() []os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return []os.Signal{os.Interrupt, syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
}

// exitNow kills the children that an earlier signal is still stopping, and ends the
// process with the default action of sig.
func exitNow(sig os.Signal) {
	process.KillChildren()
	signal.Reset(sig)
	self, err := os.FindProcess(os.Getpid())
	if err != nil { // cannot happen: our own process exists
		return
	}
	_ = self.Signal(sig)
	time.Sleep(100 * time.Millisecond) // a shell's background job ignores SIGINT by default
	_ = self.Kill()
}

// moduleVersion returns the version that go install was given, or "dev". It is used if
// the linker did not set a version.
func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// showPage shows the collected results, in the pager if the screen is too
// small. It calls leave before the pager reads the keyboard.
func (e *Env) showPage(ctx context.Context, leave func()) {
	page, collected := e.IO.pipe.Collected()
	if !collected {
		return
	}
	if _, rows := e.IO.size(); context.Cause(ctx) != nil || e.IO.rows(page) < rows {
		_, _ = e.IO.pipe.Write([]byte(page)) // the writer keeps the error
		return
	}
	leave()
	tty, err := e.Person.OpenTTY()
	if err == nil {
		defer tty.Close()
		err = tty.Page(context.WithoutCancel(ctx), page)
	}
	if err != nil {
		e.IO.Log.Info("no pager", "err", err)
		_, _ = e.IO.pipe.Write([]byte(page))
	}
}

const (
	// headroom is how much may be allocated between two garbage collections. Little memory stays in
	// use, but decoding the messages of one call takes half a MiB, so without headroom the
	// collector would run every few calls.
	headroom = 16 << 20
	// leastPercent is the minimum growth of the heap between two collections. With
	// thousands of clients each collection takes longer and should run less often.
	leastPercent = 50
)

// CollectLater makes the garbage collector run only after headroom was allocated. It adjusts the
// target after each collection, and does nothing if GOGC is set. It is for long-running commands.
func CollectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(leastPercent)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	live := m.NextGC * 100 / (100 + leastPercent)
	percent := headroom * 100 / max(live, 4<<20)
	debug.SetGCPercent(max(int(percent), leastPercent))
	marker := new(int)
	runtime.AddCleanup(marker, func(struct{}) { CollectLater() }, struct{}{})
}

// Env holds what a command may need. Costly parts are created when first used, so that a command
// pays only for what it uses. The functions of a command take only the parts that they use.
type Env struct {
	Version string
	Argv    []string // the command line, without the program
	IO      *IO      // the streams, and printing
	Person  *Person  // questions to the person
	Config  *Config  // flags, environment and settings
	Trust   *Trust   // trust in projects
	Engine  *Engine  // the session

	helpErr error // why a command's own help could not be shown
}

func newEnv(version string, s Streams, environ []string) *Env {
	e := &Env{Version: version, IO: newIO(s, environ)}
	e.Person = &Person{io: e.IO}
	folders := &state.Folders{Environ: environ}
	e.Trust = &Trust{person: e.Person, folders: folders}
	e.Config = &Config{io: e.IO, person: e.Person, trust: e.Trust, Environ: environ, Folders: folders,
		piped: map[string][]byte{}}
	e.Engine = &Engine{
		version:    version,
		start:      time.Now(),
		io:         e.IO,
		person:     e.Person,
		config:     e.Config,
		recordings: recordings{config: e.Config},
	}
	e.IO.context = func() context.Context { return e.Config.command.Context() }
	return e
}

// prepare reads the global flags and their variables without opening any file.
func (e *Env) prepare(cmd *cobra.Command) error {
	if err := checkEmpty(cmd.Flags()); err != nil {
		return err
	}
	if err := e.Config.follow(cmd); err != nil {
		return err
	}
	e.Person.NonInteractive = e.Config.Globals.NonInteractive
	if err := e.IO.follow(e.Config.Globals, e.Config.globalFlags().Changed("jq")); err != nil {
		return err
	}
	if err := e.Config.checkFlags(); err != nil {
		return err
	}
	e.IO.live()
	return nil
}

// checkEmpty returns an error for a flag with an empty value, such as from an unset shell variable.
// Empty does not mean the default: without its --replay or --profile, a command would do more than
// was intended.
func checkEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		} else if f.Value.Type() != "string" || f.Name == "params" || f.Name == "description" {
			return
		}
		if len(values) == 0 || slices.Contains(values, "") {
			err = Usage("--"+f.Name+" is empty", "give it a value, or leave it out")
		}
	})
	return err
}
