package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/ui"
)

// Streams are the standard streams of a command. Only results are written to Out. Text
// written to Out or Err is escaped.
type Streams struct {
	In                    io.Reader
	Out, Err              *ui.Writer
	InTTY, OutTTY, ErrTTY bool          // whether each is a terminal
	InFile                bool          // whether In is a file that is not empty
	Patience              time.Duration // how long a wait is before it is told without a terminal; 0: it is not
}

// NewStreams returns the streams of a process.
func NewStreams(in, out, err *os.File) Streams {
	isTTY := func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
	return Streams{
		In: in, Out: ui.NewWriter(out), Err: ui.NewWriter(err),
		InTTY: isTTY(in), OutTTY: isTTY(out), ErrTTY: isTTY(err), InFile: hasContent(in), Patience: ui.SlowTime,
	}
}

// hasContent reports whether f is a file that is not empty.
func hasContent(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// IO holds the streams of a run and prints on them. Its methods follow the global flags
// for output, and filter the JSON that they print by --jq.
type IO struct {
	Streams
	Screen *ui.Screen   // notes and live lines on stderr
	JQ     *Filter      // nil without --jq
	Log    *slog.Logger // to stderr with --verbose, else nowhere

	JSON    bool // results are JSON, and stderr is lines of JSON
	Quiet   bool // print no warnings
	Verbose bool // print progress and details
	color   string
	noPager bool

	// Relay receives each diagnostic instead of stderr. nil means they are printed.
	Relay func(registry.Diagnostic)

	jsonLog  *slog.Logger           // of all that is printed on stderr; nil means it is text
	environ  []string               // of the process, "K=V"
	vars     expand.Environ         // environ by name
	context  func() context.Context // of the running command, which ends --jq
	pipe     *pipeWriter            // the writer of Out
	reported reported
	summary  string // printed below the results
	read     string // what stdin had; "" if it was not read
}

func newIO(s Streams, environ []string) *IO {
	return &IO{Streams: s, Screen: ui.NewScreen(s.Err), Log: slog.New(slog.DiscardHandler), environ: environ, vars: expand.NewEnviron(environ)}
}

// follow applies the global flags for output. jqFlag reports whether the filter was set
// by --jq rather than by the environment.
func (o *IO) follow(g settings.Globals, jqFlag bool) (err error) {
	o.JSON, o.Quiet, o.Verbose, o.color, o.noPager = g.JSON, g.Quiet, g.Verbose, g.Color, g.NoPager
	if g.JQ != "" {
		o.JSON = true // the filter applies to JSON
		name := "--jq"
		if !jqFlag {
			name = "TOOLREG_JQ"
		}
		o.JQ, err = newFilter(name, g.JQ)
	}
	return err
}

// live starts to show progress.
func (o *IO) live() {
	if o.Verbose {
		o.LogAt(slog.LevelDebug, false)
	}
	if o.ErrTTY && o.getenv("TERM") != "dumb" {
		o.Screen.Live(!o.Quiet)
	} else if o.Patience > 0 {
		o.Screen.Slow(o.Patience, func(waiting string) { o.Notef("waiting for %s", waiting) })
	}
}

// LogAt makes Log print entries from a level on, as lines of text or, if asJSON is set, of JSON.
// Then all else that is printed on stderr is in such lines too, at any level.
func (o *IO) LogAt(level slog.Level, asJSON bool) {
	options := &slog.HandlerOptions{Level: level}
	if asJSON {
		o.Log = slog.New(slog.NewJSONHandler(o.Screen, options))
		o.jsonLog = slog.New(slog.NewJSONHandler(o.Screen, nil))
		return
	}
	o.Log = slog.New(slog.NewTextHandler(o.Screen, options))
}

func (o *IO) getenv(name string) string {
	return o.vars.Get(name)
}

// errReaderGone reports that stdout has no reader.
var errReaderGone = errors.New("the reader of stdout has closed it")

// Stdout returns the writer of Out.
func (o *IO) Stdout() io.Writer { return o.pipe.Dest() }

// WatchReader ends the run when the reader of stdout is gone, even if nothing
// is written, until stop is called.
func (o *IO) WatchReader() (stop func()) { return o.pipe.Watch() }

// reported prevents diagnostics from being printed twice.
type reported struct {
	mu   sync.Mutex
	keys map[string]bool

	messages []string
}

// new returns a message without the message of a printed diagnostic at its end.
func (r *reported) new(message string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, printed := range r.messages {
		if message == printed {
			return ""
		}
		if rest, ok := strings.CutSuffix(message, ": "+printed); ok {
			return rest
		}
	}
	return message
}

// first reports whether a diagnostic is new.
func (r *reported) first(d registry.Diagnostic) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := d.Code + "\x00" + d.Source + "\x00" + d.Tool + "\x00" + d.Message
	if r.keys[key] {
		return false
	}
	if r.keys == nil {
		r.keys = map[string]bool{}
	}
	r.keys[key] = true
	r.messages = append(r.messages, d.Message)
	return true
}
