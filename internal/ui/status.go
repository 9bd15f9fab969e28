package ui

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// StatusOptions are the options of a [Status].
type StatusOptions struct {
	// Out is the terminal to draw on, normally stderr. nil means nothing is drawn.
	Out io.Writer
	// Tell is called without Out when a piece of work has taken longer than Delay, with its name
	// and state; nil disables the status.
	Tell func(text string)
	// Size returns the numbers of columns and rows of the terminal.
	Size func() (columns, rows int)
	// Delay is the time before the first drawing; 0 means 200 ms.
	Delay time.Duration
	// Paused is the number of pauses that have begun before. Zero draws lines at once.
	Paused int
}

// Status shows each long-running piece of work with its state on one line, and
// erases the lines at the end. It is safe for concurrent use. Close it
// before writing anything else to the terminal.
type Status struct {
	opts  StatusOptions
	start time.Time
	stop  chan struct{}
	ended chan struct{}
	// continued receives a value when the process continues after a stop.
	continued chan os.Signal

	mu      sync.Mutex
	lines   []statusLine
	drawn   int       // lines on the screen now
	at      time.Time // time of the last drawing
	second  int       // the elapsed seconds that it showed
	tick    time.Time // time of the last check of the lines
	changed bool      // whether there are changes since then
	due     bool
	paused  int
	closed  bool
}

type statusLine struct {
	name, state string
	done, total float64     // total is 0 if unknown
	slow        *time.Timer // calls Tell; nil with Out
}

func newStatus(opts StatusOptions) *Status {
	if opts.Delay <= 0 {
		opts.Delay = 200 * time.Millisecond
	}
	s := &Status{
		opts:   opts,
		paused: opts.Paused,
		start:  time.Now(),
		stop:   make(chan struct{}),
		ended:  make(chan struct{}),
	}
	if opts.Out == nil {
		s.closed = opts.Tell == nil
		close(s.ended)
		return s
	}
	var forget func()
	s.continued, forget = watchContinued()
	go func() {
		defer forget()
		s.run()
	}()
	return s
}

// frame is the minimum time between two drawings, because progress may be
// reported very often.
const frame = 50 * time.Millisecond

// elapsed returns the number of full seconds since the start.
func (s *Status) elapsed() int { return int(time.Since(s.start).Seconds()) }

func (s *Status) run() {
	defer close(s.ended)
	select {
	case <-time.After(s.opts.Delay):
	case <-s.stop:
		return
	}
	s.mu.Lock()
	s.due = true
	s.draw()
	s.mu.Unlock()
	ticker := time.Tick(frame)
	for {
		select {
		case <-ticker:
			s.mu.Lock()
			s.settle()
			if s.changed || s.elapsed() != s.second {
				s.draw()
			}
			s.mu.Unlock()
		case <-s.stop:
			return
		}
	}
}

// Set shows a piece of work with its state, both of which may be foreign text.
// An empty state removes the line.
func (s *Status) Set(name, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(statusLine{name: name, state: state}, state == "")
}

// Progress shows the progress of a piece of work: done of total, which is 0 if
// unknown, with a message, which may be foreign text.
func (s *Status) Progress(name string, done, total float64, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(statusLine{name: name, state: message, done: done, total: total}, false)
}

func (s *Status) set(line statusLine, gone bool) {
	if s.closed {
		return
	}
	i := slices.IndexFunc(s.lines, func(l statusLine) bool { return l.name == line.name })
	switch {
	case i >= 0 && gone:
		if slow := s.lines[i].slow; slow != nil {
			slow.Stop()
		}
		s.lines = slices.Delete(s.lines, i, i+1)
	case i >= 0:
		line.slow = s.lines[i].slow
		s.lines[i] = line
	case gone:
		return
	default:
		if s.opts.Out == nil {
			line.slow = time.AfterFunc(s.opts.Delay, s.tell)
		}
		s.lines = append(s.lines, line)
	}
	s.changed = true
	if time.Since(s.at) >= frame {
		s.draw()
	}
}

// tell tells what began last, for which the others wait if they are those of a call.
func (s *Status) tell() {
	s.mu.Lock()
	if len(s.lines) == 0 || s.closed || s.paused > 0 {
		s.mu.Unlock()
		return
	}
	last := s.lines[len(s.lines)-1]
	s.mu.Unlock()
	text := Line(last.name)
	if last.state != "" {
		text += " (" + Line(last.state) + ")"
	}
	s.opts.Tell(text)
}

// pause removes the lines from the screen until resume is called as often as pause.
func (s *Status) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused++
	s.erase()
}

func (s *Status) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused--
	s.draw()
}

// Close removes the lines from the screen. It may be called more than once.
func (s *Status) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.erase()
		close(s.stop)
		for _, line := range s.lines {
			if line.slow != nil {
				line.slow.Stop()
			}
		}
	}
	s.mu.Unlock()
	<-s.ended
}

// settle forgets the drawn lines, without erasing them, if the process was stopped
// meanwhile, for example by Ctrl-Z, because the shell has written below them. After
// a long gap between ticks it waits for the signal, which may arrive late.
func (s *Status) settle() {
	paused := !s.tick.IsZero() && time.Since(s.tick) > 4*frame
	s.tick = time.Now()
	if !paused || s.drawn == 0 {
		return
	}
	select {
	case <-s.continued:
		s.drawn = 0
	case <-time.After(frame):
	}
}

// erase removes the lines from the screen.
func (s *Status) erase() {
	if s.opts.Out == nil {
		return
	}
	s.settle()
	if s.drawn > 0 {
		_, _ = io.WriteString(s.opts.Out, s.erasure())
		s.drawn = 0
	}
}

// erasure returns a sequence that moves the cursor back to the first line and clears
// each line on the way. Clearing the rest of the screen at once would move the lines
// into tmux's scrollback.
func (s *Status) erasure() string {
	if s.drawn == 0 {
		return ""
	}
	return strings.Repeat("\x1b[1A\x1b[2K", s.drawn) + "\r"
}

func (s *Status) draw() {
	if !s.due || s.closed || s.paused > 0 {
		return
	}
	s.settle()
	columns, rows := s.opts.Size()
	var b strings.Builder
	b.WriteString(s.erasure())
	shown := s.lines
	if most := max(rows-2, 1); len(shown) > most { // lines that scroll away cannot be erased
		shown = shown[:most-1]
	}
	elapsed := s.elapsed()
	s.drawn, s.changed, s.at, s.second = 0, false, time.Now(), elapsed
	for _, l := range shown {
		b.WriteString(l.text(elapsed, columns-1) + "\n")
		s.drawn++
	}
	if n := len(s.lines) - len(shown); n > 0 {
		b.WriteString(Cut(fmt.Sprintf("and %d more", n), columns-1) + "\n")
		s.drawn++
	}
	_, _ = io.WriteString(s.opts.Out, b.String())
}

func (l statusLine) text(elapsed, columns int) string {
	parts := []string{Line(l.name) + ":"}
	switch {
	case l.total > 0:
		part := min(max(l.done/l.total, 0), 1)
		if width := min(columns/4, 30); width >= 10 {
			full := int(part * float64(width))
			parts = append(parts, "["+strings.Repeat("#", full)+strings.Repeat("-", width-full)+"]")
		}
		parts = append(parts, fmt.Sprintf("%.0f%%", part*100))
	case l.done > 0:
		parts = append(parts, fmt.Sprintf("%.0f", l.done))
	}
	if l.state != "" {
		parts = append(parts, Line(l.state))
	}
	if elapsed > 0 {
		parts = append(parts, fmt.Sprintf("(%d s)", elapsed))
	}
	text := strings.Join(parts, " ")
	if Width(text) > columns && elapsed > 0 { // cut the message, not the time
		end := fmt.Sprintf(" (%d s)", elapsed)
		return Cut(strings.TrimSuffix(text, end), max(columns-Width(end), 1)) + end
	}
	return Cut(text, columns)
}
