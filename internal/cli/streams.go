package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/screen"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/terminal"
)

// Streams are the standard streams of a command. Out has only results. What is
// written to Out or Err is escaped.
type Streams struct {
	In                    io.Reader
	Out, Err              *terminal.Writer
	InTTY, OutTTY, ErrTTY bool // whether each is a terminal
}

// NewStreams returns the streams of a process.
func NewStreams(in, out, err *os.File) Streams {
	isTTY := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	return Streams{
		In: in, Out: terminal.NewWriter(out), Err: terminal.NewWriter(err),
		InTTY: isTTY(in), OutTTY: isTTY(out), ErrTTY: isTTY(err),
	}
}

// IO prints for a run, and has the streams that the run reads and writes. Its methods
// follow the global flags for output; the JSON that they print is filtered by --jq.
type IO struct {
	Streams
	Screen *screen.Screen // notes and live lines on stderr
	JQ     *Filter        // nil without --jq
	Log    *slog.Logger   // to stderr with --verbose, else nowhere

	JSON    bool // results are JSON, and stderr is lines of JSON
	Quiet   bool // print no warnings
	Verbose bool // print progress and details
	color   string
	noPager bool

	environ  []string               // of the process, "K=V"
	context  func() context.Context // of the running command, which ends --jq
	pipe     *pipeWriter            // the writer of Out
	reported reported
	summary  string // printed below the results
}

func newIO(s Streams, environ []string) *IO {
	return &IO{Streams: s, Screen: screen.New(s.Err), Log: slog.New(slog.DiscardHandler), environ: environ}
}

// follow applies the global flags for output.
func (o *IO) follow(g settings.Globals) {
	o.JSON, o.Quiet, o.Verbose, o.color, o.noPager = g.JSON, g.Quiet, g.Verbose, g.Color, g.NoPager
	o.JSON = o.JSON || g.JQ != "" // the filter applies to JSON
}

// live begins to show progress.
func (o *IO) live() {
	if o.Verbose {
		o.Log = slog.New(slog.NewTextHandler(o.Screen, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	o.Screen.Live(o.ErrTTY && o.getenv("TERM") != "dumb" && !o.Quiet)
}

func (o *IO) getenv(name string) string {
	v, _ := expand.Find(o.environ, name)
	return v
}

// errReaderGone reports that stdout has no reader.
var errReaderGone = errors.New("the reader of stdout has closed it")

// ReadFile reads a file that the person named on the command line.
func (e *Env) ReadFile(ctx context.Context, name string) ([]byte, error) {
	return untilDone(ctx, func() ([]byte, error) { return os.ReadFile(e.Absolute(name)) })
}

// readPiped reads the --settings files that can be read only once: stdin, which
// is named -, and pipes, such as those of a shell's <(…). Commands must not
// read stdin after that.
func (e *Env) readPiped(files []string) error {
	for _, name := range files {
		open := func() (io.Reader, error) { return e.IO.In, nil }
		if name != "-" {
			path := e.Absolute(name)
			if info, err := os.Stat(path); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
				continue
			}
			open = func() (io.Reader, error) { return os.Open(path) }
		}
		if _, read := e.piped[name]; read {
			continue
		}
		data, err := untilDone(e.command.Context(), func() ([]byte, error) {
			r, err := open()
			if err != nil {
				return nil, err
			}
			return io.ReadAll(io.LimitReader(r, document.MaxFile+1))
		})
		if err != nil {
			return fmt.Errorf("reading the settings of --settings %s: %w", name, err)
		}
		if name == "-" {
			e.IO.In = readerFunc(func([]byte) (int, error) {
				return 0, &UsageError{Err: errors.New("stdin holds the settings (--settings -)"), Hint: "give params with --params or k=v"}
			})
		}
		if e.piped == nil {
			e.piped = map[string][]byte{}
		}
		e.piped[name] = data
	}
	return nil
}

// IsPiped reports whether a --settings file was read from a pipe.
func (e *Env) IsPiped(name string) bool {
	_, piped := e.piped[name]
	return piped
}

// Absolute returns a path of the command line as an absolute path.
func (e *Env) Absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(e.Dir, path)
}

// Stdout returns the writer of Out.
func (o *IO) Stdout() io.Writer { return o.pipe.Dest() }

// WatchReader ends the run when the reader of stdout is gone, even if nothing
// is written, until stop is called.
func (o *IO) WatchReader() (stop func()) { return o.pipe.Watch() }
