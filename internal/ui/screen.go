package ui

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/toolreg/toolreg/internal/registry"
)

// Limits in bytes on output that waits for the end of a question; beyond them it is
// written anyway.
const (
	maxNotes   = 64 << 10
	maxResults = 1 << 20
)

// Screen coordinates all output on the terminal: notes, results, live lines and
// questions. It is safe for concurrent use. Create it with [NewScreen].
type Screen struct {
	err      *Writer
	live     bool                 // live lines are enabled
	slow     func(waiting string) // see Slow; nil means nothing is told
	slowTime time.Duration

	shown sync.Mutex // guards what follows; may be locked while mu is held

	status *Status // the live lines of all work, nil if there is none
	works  int     // pieces of work that show progress
	paused int     // reasons why no live lines are drawn

	mu        sync.Mutex
	questions int           // number of questions on the terminal
	closed    bool          // output does not wait for questions
	notes     []byte        // notes to write after the questions
	results   *ResultWriter // nil means results do not go to a terminal
}

// NewScreen returns a Screen on stderr without live lines.
func NewScreen(stderr *Writer) *Screen { return &Screen{err: stderr} }

// Live enables live lines, which require a terminal that can move its cursor.
// Call it before progress begins.
func (s *Screen) Live(on bool) { s.live = on }

// SlowTime is how long a wait is before it is told without live lines.
const SlowTime = 2 * time.Second

// Slow lets tell be called once, without live lines, if something is waited for that takes some
// time, with its name. Call it before progress begins.
func (s *Screen) Slow(after time.Duration, tell func(waiting string)) {
	var once sync.Once
	s.slow, s.slowTime = func(waiting string) { once.Do(func() { tell(waiting) }) }, after
}

// Still disables live lines for progress that begins before restore is called,
// for example while a program uses the whole screen.
func (s *Screen) Still() (restore func()) {
	was := s.live
	s.live = false
	return func() { s.live = was }
}

// Note writes text. If there is a question on the terminal, it is written after the
// question. Write errors are ignored, because they cannot be reported anywhere.
func (s *Screen) Note(text string) { s.Styled(Visible(text)) }

// Write is Note for writers of whole lines, such as a log.
func (s *Screen) Write(p []byte) (int, error) {
	s.Note(string(p))
	return len(p), nil
}

// Styled is Note for text that is safe to show and may have styles of
// [Paint].
func (s *Screen) Styled(text string) {
	defer s.Pause()()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.questions > 0 && !s.closed && len(s.notes) < maxNotes {
		s.notes = append(s.notes, text...)
		return
	}
	_ = s.err.WriteStyled(text)
}

// Results returns a writer of results to the same terminal, which concurrent
// calls share.
func (s *Screen) Results(w io.Writer) *ResultWriter {
	s.results = &ResultWriter{screen: s, w: w}
	return s.results
}

// ResultWriter writes results. Results that are written during a question appear
// after it; their write errors are left to the underlying writer.
type ResultWriter struct {
	screen  *Screen
	w       io.Writer
	waiting []byte
	resume  func() // set while the last line of output is incomplete, because live lines would overwrite it
}

// Write implements [io.Writer].
func (w *ResultWriter) Write(p []byte) (int, error) {
	w.screen.mu.Lock()
	defer w.screen.mu.Unlock()
	if w.screen.questions == 0 || w.screen.closed {
		return w.write(p)
	}
	if w.waiting = append(w.waiting, p...); len(w.waiting) > maxResults {
		w.flush()
	}
	return len(p), nil
}

// flush writes the waiting output. The caller holds the screen's mu.
func (w *ResultWriter) flush() {
	_, _ = w.write(w.waiting)
	w.waiting = nil
}

// write removes the live lines while output is written and until its last line
// is complete. The caller holds the screen's mu.
func (w *ResultWriter) write(p []byte) (int, error) {
	if w.resume == nil {
		w.resume = w.screen.Pause()
	}
	n, err := w.w.Write(p)
	if bytes.HasSuffix(p, []byte("\n")) {
		w.resume()
		w.resume = nil
	}
	return n, err
}

// Hold reserves the terminal for a question until release is called.
func (s *Screen) Hold() (release func()) {
	resume := s.Pause()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.questions++
	return func() {
		s.release()
		resume()
	}
}

// release writes what waited for the last question.
func (s *Screen) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.questions--; s.questions == 0 {
		s.flush()
	}
}

// flush writes what waited. The caller holds mu.
func (s *Screen) flush() {
	if len(s.notes) > 0 {
		_ = s.err.WriteStyled(string(s.notes))
		s.notes = nil
	}
	if s.results != nil && len(s.results.waiting) > 0 {
		s.results.flush()
	}
}

// Close writes what waits for a question that was abandoned, such as after Ctrl-C. Later
// output does not wait for it.
func (s *Screen) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.flush()
}

// Pause removes the live lines until resume is called, also those of work that begins
// meanwhile.
func (s *Screen) Pause() (resume func()) {
	s.shown.Lock()
	defer s.shown.Unlock()
	s.paused++
	if s.status != nil {
		s.status.pause()
	}
	return sync.OnceFunc(func() {
		s.shown.Lock()
		defer s.shown.Unlock()
		s.paused--
		if s.status != nil {
			s.status.resume()
		}
	})
}

// Watch shows the state of each server on live lines until done is called.
func (s *Screen) Watch() (done func()) {
	_, done = s.start()
	return done
}

// start begins a piece of work. Work within other work, such as starting the server of a
// call that a script makes, has its lines below those of the other.
func (s *Screen) start() (*Status, func()) {
	s.shown.Lock()
	defer s.shown.Unlock()
	if s.works++; s.status == nil {
		o := StatusOptions{Paused: s.paused}
		if s.live {
			o.Out, o.Size = s.err.Unescaped(), SizeOf(s.err.Unescaped())
		} else if s.slow != nil {
			o.Tell, o.Delay = s.slow, s.slowTime
		}
		s.status = newStatus(o)
	}
	return s.status, sync.OnceFunc(s.end)
}

func (s *Screen) end() {
	s.shown.Lock()
	defer s.shown.Unlock()
	if s.works--; s.works == 0 {
		s.status.Close()
		s.status = nil
	}
}

// Line shows text on the live line of a name, if live lines are enabled; ""
// removes the line.
func (s *Screen) Line(name, text string) {
	s.shown.Lock()
	defer s.shown.Unlock()
	if s.status != nil {
		s.status.Set(name, text)
	}
}

// Progress shows the progress of a running call on one live line until done is
// called. by is what runs it, which is told without live lines.
func (s *Screen) Progress(call, by string) (show func(registry.Progress), done func()) {
	status, end := s.start()
	if !s.live {
		status.Set(call, by)
	}
	return func(p registry.Progress) { status.Progress(call, p.Done, p.Total, p.Message) }, func() {
		status.Set(call, "")
		end()
	}
}

// SizeOf returns a function that returns the size of the terminal that w writes to,
// in columns and rows, or 80 by 24 if it is unknown.
func SizeOf(w io.Writer) func() (columns, rows int) {
	return func() (int, int) {
		if f, ok := w.(*os.File); ok {
			if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
				return columns, rows
			}
		}
		return 80, 24
	}
}
