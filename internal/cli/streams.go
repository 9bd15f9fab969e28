package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

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

// errReaderGone reports that stdout has no reader.
var errReaderGone = errors.New("the reader of stdout has closed it")

// pipeWriter writes results. If the reader is gone, it calls gone once and
// discards the rest, which is not an error (spec section 3). It keeps any other
// error, so that no result is lost silently. It is safe for concurrent use.
type pipeWriter struct {
	w    io.Writer
	gone func()

	mu     sync.Mutex
	broken bool
	err    error
	page   *bytes.Buffer // nil: write immediately
}

func (p *pipeWriter) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		return len(b), nil
	}
	if p.page != nil {
		return p.page.Write(b)
	}
	n, err := p.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.broken = true
		p.gone()
		return len(b), nil
	}
	if err != nil {
		err = fmt.Errorf("writing the result: %w", err)
		if p.err == nil {
			p.err = err
		}
	}
	return n, err
}

// watch checks whether the reader is gone while nothing is written, until stop
// is called.
func (p *pipeWriter) watch() (stop func()) {
	f, ok := p.w.(*os.File)
	if !ok {
		return func() {}
	}
	quit := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
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

func (p *pipeWriter) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *pipeWriter) isBroken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// untilDone returns what read returns, or the cause of ctx if that ends first,
// because stdin or a named pipe may never provide data. An abandoned read ends
// with the process.
func untilDone(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type outcome struct {
		data []byte
		err  error
	}
	got := make(chan outcome, 1)
	go func() {
		data, err := read()
		got <- outcome{data, err}
	}()
	select {
	case o := <-got:
		return o.data, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// readerFunc is a function that implements io.Reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// cancellable returns a reader whose reads end with ctx.
func cancellable(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(b []byte) (int, error) {
		data, err := untilDone(ctx, func() ([]byte, error) {
			own := make([]byte, len(b)) // b must not be used once ctx is done
			n, err := r.Read(own)
			return own[:n], err
		})
		return copy(b, data), err
	})
}

// ReadFile reads a file that the person named on the command line.
func (e *Env) ReadFile(ctx context.Context, name string) ([]byte, error) {
	return untilDone(ctx, func() ([]byte, error) { return os.ReadFile(e.Absolute(name)) })
}

// readPiped reads the --settings files that can be read only once: stdin, which
// is named -, and pipes, such as those of a shell's <(…). Commands must not
// read stdin after that.
func (e *Env) readPiped(files []string) error {
	for _, name := range files {
		open := func() (io.Reader, error) { return e.In, nil }
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
			e.In = readerFunc(func([]byte) (int, error) {
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
func (e *Env) Stdout() io.Writer { return e.pipe.w }

// WatchReader ends the run when the reader of stdout is gone, even if nothing
// is written, until stop is called.
func (e *Env) WatchReader() (stop func()) { return e.pipe.watch() }
