package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// StatusOptions tune a [Status].
type StatusOptions struct {
	// Out is the terminal to draw on, normally stderr. nil switches the status
	// off.
	Out io.Writer
	// Size returns columns and rows of the terminal; nil means 80 by 24.
	Size func() (columns, rows int)
	// Delay is how long nothing is drawn; 0 means 200 ms.
	Delay time.Duration
}

// Status shows long work as one line per piece of it, with its state, and
// leaves nothing behind (spec section 3). It is safe for concurrent use. Close
// it before anything else is written to the terminal.
type Status struct {
	opts  StatusOptions
	start time.Time
	stop  chan struct{}
	ended chan struct{}

	mu     sync.Mutex
	lines  []statusLine
	drawn  int // lines on the screen now
	due    bool
	paused int
	closed bool
}

type statusLine struct{ name, state string }

// NewStatus returns a status that has nothing to show yet.
func NewStatus(opts StatusOptions) *Status {
	if opts.Delay <= 0 {
		opts.Delay = 200 * time.Millisecond
	}
	s := &Status{opts: opts, start: time.Now(), stop: make(chan struct{}), ended: make(chan struct{})}
	if opts.Out == nil {
		s.closed = true
		close(s.ended)
		return s
	}
	go s.run()
	return s
}

// tick is how often running times are drawn anew.
const tick = time.Second

func (s *Status) run() {
	defer close(s.ended)
	delay := time.NewTimer(s.opts.Delay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-s.stop:
		return
	}
	s.mu.Lock()
	s.due = true
	s.draw()
	s.mu.Unlock()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.mu.Lock()
			s.draw()
			s.mu.Unlock()
		case <-s.stop:
			return
		}
	}
}

// Set shows a piece of work with its state, both of which may be foreign text.
// An empty state takes the line away.
func (s *Status) Set(name, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for i := range s.lines {
		if s.lines[i].name != name {
			continue
		}
		if state == "" {
			s.lines = append(s.lines[:i], s.lines[i+1:]...)
		} else {
			s.lines[i].state = state
		}
		s.draw()
		return
	}
	if state != "" {
		s.lines = append(s.lines, statusLine{name, state})
		s.draw()
	}
}

// Pause takes the lines off the screen until resume is called.
func (s *Status) Pause() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused++
	s.erase()
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.paused--
		s.draw()
	})
}

// Close takes the lines off the screen for good. It may be called more than
// once.
func (s *Status) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.erase()
		close(s.stop)
	}
	s.mu.Unlock()
	<-s.ended
}

// erase moves the cursor back to where the first line was drawn and clears
// everything below.
func (s *Status) erase() {
	if s.drawn > 0 {
		_, _ = fmt.Fprintf(s.opts.Out, "\x1b[%dA\r\x1b[J", s.drawn)
		s.drawn = 0
	}
}

func (s *Status) draw() {
	if !s.due || s.closed || s.paused > 0 {
		return
	}
	columns, rows := 80, 24
	if s.opts.Size != nil {
		columns, rows = s.opts.Size()
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", s.drawn)
	}
	shown := s.lines
	if most := max(rows-2, 1); len(shown) > most { // what scrolls away cannot be erased
		shown = shown[:most-1]
	}
	elapsed := int(time.Since(s.start).Seconds())
	s.drawn = 0
	for _, l := range shown {
		text := fmt.Sprintf("%s: %s", Line(l.name), Line(l.state))
		if elapsed > 0 {
			text += fmt.Sprintf(" (%d s)", elapsed)
		}
		b.WriteString(Cut(text, columns-1) + "\n")
		s.drawn++
	}
	if n := len(s.lines) - len(shown); n > 0 {
		b.WriteString(Cut(fmt.Sprintf("and %d more", n), columns-1) + "\n")
		s.drawn++
	}
	_, _ = io.WriteString(s.opts.Out, b.String())
}
