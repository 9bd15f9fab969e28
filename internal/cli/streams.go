package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
	"github.com/toolreg/toolreg/internal/ui"
)

// Streams are the standard streams of a command. Only results are written to Out. Text
// written to Out or Err is escaped.
type Streams struct {
	In                    io.Reader
	Out, Err              *ui.Writer
	InTTY, OutTTY, ErrTTY bool // whether each is a terminal
	InFile                bool // whether In is a file that is not empty
	// Patience is how long a wait lasts before a line without a terminal says so. Zero means no
	// such line.
	Patience time.Duration
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
	return &IO{
		Streams:  s,
		Screen:   ui.NewScreen(s.Err),
		Log:      slog.New(slog.DiscardHandler),
		environ:  environ,
		vars:     expand.NewEnviron(environ),
		reported: reported{keys: map[string]bool{}},
	}
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

// LogAt makes Log print entries from a level on, as lines of text or, with asJSON, of JSON. With
// asJSON, everything else on stderr is printed as such lines too, at any level.
func (o *IO) LogAt(level slog.Level, asJSON bool) {
	options := &slog.HandlerOptions{Level: level}
	if asJSON {
		o.Log = slog.New(slog.NewJSONHandler(o.Screen, options))
		o.jsonLog = slog.New(slog.NewJSONHandler(o.Screen, nil))
		return
	}
	o.Log = slog.New(slog.NewTextHandler(o.Screen, options))
}

// ErrReaderGone is the cause of a context that ended because stdout has no reader.
var ErrReaderGone = errors.New("the reader of stdout has closed it")

// Stdout returns the writer of Out.
func (o *IO) Stdout() io.Writer { return o.pipe.w }

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

func (r *reported) first(d registry.Diagnostic) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := d.Code + "\x00" + d.Source + "\x00" + d.Tool + "\x00" + d.Message
	if r.keys[key] {
		return false
	}
	r.keys[key] = true
	r.messages = append(r.messages, d.Message)
	return true
}

// pipeWriter writes results. If the reader is gone, it calls gone once and discards the
// rest, which is not an error. It keeps any other error, so that no result is lost
// silently. It is safe for concurrent use.
type pipeWriter struct {
	w    io.Writer
	gone func()

	steps atomic.Uint64 // odd during a write

	writing sync.Mutex // held during a write, which may wait for the reader
	mu      sync.Mutex
	broken  bool
	err     error
	page    *bytes.Buffer // nil means write immediately
}

// newPipeWriter returns a writer to w. gone may be called from any goroutine.
func newPipeWriter(w io.Writer, gone func()) *pipeWriter { return &pipeWriter{w: w, gone: gone} }

// Collect makes the writer keep what is written, until Collected is called.
func (p *pipeWriter) Collect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page == nil {
		p.page = &bytes.Buffer{}
	}
}

// Collected returns what was written since Collect and ends collecting. ok is false if
// Collect was not called.
func (p *pipeWriter) Collected() (page string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page == nil {
		return "", false
	}
	page, p.page = p.page.String(), nil
	return page, true
}

// Write implements [io.Writer]. Once the reader is gone, it discards the data and
// reports success.
func (p *pipeWriter) Write(b []byte) (int, error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	if n, done := p.keep(b); done {
		return n, nil
	}
	p.steps.Add(1)
	n, err := p.w.Write(b)
	p.steps.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(err, syscall.EPIPE) {
		p.broken = true
		p.gone()
		return len(b), nil
	}
	if err != nil {
		err = fmt.Errorf("writing the result: %w", text.Cause(err))
		if p.err == nil {
			p.err = err
		}
	}
	return n, err
}

// keep collects or discards b if the writer is in that state.
func (p *pipeWriter) keep(b []byte) (n int, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		return len(b), true
	}
	if p.page != nil {
		n, _ = p.page.Write(b) // a buffer: cannot fail
		return n, true
	}
	return 0, false
}

// WhenStuck calls f once a write has waited for its reader for d.
func (p *pipeWriter) WhenStuck(d time.Duration, f func()) {
	before := p.steps.Load()
	time.AfterFunc(d, func() {
		if now := p.steps.Load(); now == before && now%2 == 1 {
			f()
			return
		}
		p.WhenStuck(d, f)
	})
}

// Watch checks whether the reader is gone while nothing is written, until stop
// is called.
func (p *pipeWriter) Watch() (stop func()) {
	f, ok := p.w.(*os.File)
	if !ok {
		return func() {}
	}
	quit := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.Tick(200 * time.Millisecond)
		for {
			select {
			case <-quit:
				return
			case <-tick:
			}
			if readerGone(f) {
				p.mu.Lock()
				p.broken = true
				p.mu.Unlock()
				p.gone()
				return
			}
		}
	})
	return func() { close(quit); watching.Wait() }
}

// Failure returns the first write error; nil if it was that the reader is gone.
func (p *pipeWriter) Failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// IsBroken reports whether the reader is gone.
func (p *pipeWriter) IsBroken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// cancellable returns a reader whose reads end with ctx.
func cancellable(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(b []byte) (int, error) {
		data, err := timing.UntilDone(ctx, func() ([]byte, error) {
			own := make([]byte, len(b)) // b must not be used once ctx is done
			n, err := r.Read(own)
			return own[:n], err
		})
		return copy(b, data), err
	})
}
