package callcmd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/ui"
)

// stream prints the output of a call while it runs (call --stream). Its methods
// are safe for concurrent use.
type stream struct {
	*printer
	showMedia func(registry.Content) error // on a terminal

	mu   sync.Mutex
	any  bool   // whether something was printed
	last string // last output
	err  error
}

// outputEvent is a piece of output, with --json on its own line.
type outputEvent struct {
	Type    string `json:"type"` // "output"
	Content any    `json:"content"`
}

// progressEvent is a progress notification.
type progressEvent struct {
	Type    string  `json:"type"` // "progress"
	Done    float64 `json:"done,omitempty"`
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

// resultEvent is the last event of a call that returned a result.
type resultEvent struct {
	Type string `json:"type"` // "result"
	Document
}

// emit prints one piece.
func (s *stream) emit(c registry.Content) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	if s.ios.JSON {
		s.err = s.ios.PrintLine(outputEvent{"output", Content([]registry.Content{c})})
		return
	}
	text := cli.PartText(c)
	if text == "" {
		return
	}
	if c.Data != nil && s.ios.OutTTY {
		s.any, s.last = true, "\n"
		s.err = s.showMedia(c)
		return
	}
	s.any, s.last = true, text
	_, s.err = io.WriteString(s.ios.Results(), text)
}

// progress prints progress as an event; without --json the live line shows it.
func (s *stream) progress(show func(registry.Progress)) func(registry.Progress) {
	if !s.ios.JSON {
		return show
	}
	return func(p registry.Progress) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err == nil {
			s.err = s.ios.PrintLine(progressEvent{"progress", p.Done, p.Total, p.Message})
		}
	}
}

// finish prints what was not streamed: the result of a tool that emitted
// nothing, the error, and with --json always the result.
func (s *stream) finish(ctx context.Context, t *registry.Tool, r registry.Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case s.ios.JSON:
		return s.ios.PrintLine(resultEvent{"result", NewDocument(t, r)})
	case !s.any:
		return s.print(ctx, t, r)
	}
	s.streamed = true
	if !strings.HasSuffix(s.last, "\n") && s.ios.OutTTY {
		if _, err := io.WriteString(s.ios.Out, "\n"); err != nil {
			return err
		}
	}
	if r.IsError && r.ErrorCategory != registry.ErrorCancellation && r.Summary != "" && !s.ios.Quiet && !s.ios.ErrTTY {
		s.ios.Note(fmt.Sprintf("toolreg: %s: %s\n", t.Name, ui.Line(r.Summary)))
	}
	return nil
}
