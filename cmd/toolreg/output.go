package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/terminal"
)

// encodeJSON encodes without HTML escapes, with everything invisible escaped.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return terminal.EscapeJSON(b.Bytes()), nil
}

// printJSON prints one document, through --jq where it is given. On a terminal
// it is indented.
func (a *app) printJSON(v any) error { return a.printDocument(v, a.outTTY) }

// printLine prints one document on one line, on a terminal too.
func (a *app) printLine(v any) error { return a.printDocument(v, false) }

// printDocument prints one document through --jq where it is given.
func (a *app) printDocument(v any, indented bool) error {
	data, err := encodeJSON(v)
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	if a.jq != nil {
		return a.jq.print(a.out, data)
	}
	if indented {
		var b bytes.Buffer
		if json.Indent(&b, data, "", "  ") == nil {
			data = b.Bytes()
		}
	}
	_, err = a.out.Write(data)
	return err
}

// diagnose prints what was noticed on stderr, each thing once: warnings and
// errors, with --verbose also what is good to know, with --quiet errors alone.
func (a *app) diagnose(diags []registry.Diagnostic) {
	a.telling.Lock()
	defer a.telling.Unlock()
	for _, d := range diags {
		key := d.Code + "\x00" + d.Source + "\x00" + d.Tool + "\x00" + d.Message
		if a.told[key] || !a.wants(d.Severity) {
			continue
		}
		a.told[key] = true
		if a.globals.JSON {
			if line, err := encodeJSON(map[string]registry.Diagnostic{"diagnostic": d}); err == nil {
				a.note(string(line))
			}
			continue
		}
		a.note(diagnosticLine(d))
	}
}

func (a *app) wants(s registry.Severity) bool {
	switch s {
	case registry.SeverityError:
		return true
	case registry.SeverityWarning:
		return !a.globals.Quiet
	}
	return a.globals.Verbose || a.thorough
}

func diagnosticLine(d registry.Diagnostic) string {
	var b strings.Builder
	fmt.Fprintf(&b, "toolreg: %s: ", d.Severity)
	if d.Source != "" && !strings.Contains(d.Message, d.Source) {
		b.WriteString(terminal.Line(d.Source) + ": ")
	}
	b.WriteString(indent(terminal.Visible(d.Message)))
	if d.Hint != "" {
		b.WriteString("\n  hint: " + terminal.Line(d.Hint))
	}
	return b.String() + "\n"
}

// indent sets further lines of a text off, so that foreign text never looks
// like a line of our own.
func indent(s string) string {
	return strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  | ")
}

// maxHeld is how many bytes are kept back while a question stands on the screen.
const maxHeld = 64 << 10

// note writes to stderr, after the question where one stands on the screen.
// There is nowhere to tell that stderr is gone.
func (a *app) note(text string) {
	a.screen.Lock()
	defer a.screen.Unlock()
	if a.questions > 0 && len(a.held) < maxHeld {
		a.held = append(a.held, text...)
		return
	}
	_, _ = io.WriteString(a.err, text)
}

// maxHeldResults is how many bytes of results are kept back while a question
// stands on the screen.
const maxHeldResults = 1 << 20

// screenWriter writes results to the terminal, after the question where one
// stands on the screen: calls that run at once share it. Whoever reads results
// elsewhere gets them as they come. The writer behind keeps its own failures.
type screenWriter struct {
	app  *app
	w    io.Writer
	held []byte
}

// Write implements [io.Writer].
func (s *screenWriter) Write(p []byte) (int, error) {
	a := s.app
	a.screen.Lock()
	defer a.screen.Unlock()
	if a.questions == 0 {
		return s.w.Write(p)
	}
	if s.held = append(s.held, p...); len(s.held) > maxHeldResults {
		s.release()
	}
	return len(p), nil
}

// release writes what was kept back. screen is held.
func (s *screenWriter) release() {
	_, _ = s.w.Write(s.held)
	s.held = nil
}

// holdScreen leaves the screen to a question until release is called.
func (a *app) holdScreen() (release func()) {
	resume := a.pauseStatus()
	a.screen.Lock()
	defer a.screen.Unlock()
	a.questions++
	return func() {
		a.screen.Lock()
		if a.questions--; a.questions == 0 {
			_, _ = a.err.Write(a.held)
			a.held = nil
			if s, ok := a.out.(*screenWriter); ok {
				s.release()
			}
		}
		a.screen.Unlock()
		if resume != nil {
			resume()
		}
	}
}

// finish tells of the error, if any, and returns the exit code.
func (a *app) finish(ctx context.Context, err error, out *pipeWriter) int {
	if err == nil || out.isBroken() && isCancelled(ctx, err) {
		return exitOK
	}
	if r, ok := err.(*reported); ok {
		return r.code
	}
	f := classify(ctx, err)
	if a.globals.JSON {
		a.noteJSON(f)
	} else {
		a.noteText(f)
	}
	return f.exit
}

func (a *app) noteText(f failure) {
	a.note("toolreg: " + indent(terminal.Visible(f.message)) + "\n")
	if f.hint != "" {
		a.note("  hint: " + terminal.Line(f.hint) + "\n")
	}
}

// errorBody is an error in JSON (spec section 3).
type errorBody struct {
	Code    string               `json:"code"`
	Exit    int                  `json:"exit"`
	Message string               `json:"message"`
	Hint    string               `json:"hint,omitempty"`
	Details []registry.Violation `json:"details,omitempty"`
}

func newErrorBody(f failure) errorBody {
	return errorBody{f.word, f.exit, f.message, f.hint, f.details}
}

// noteJSON prints the error as one line of JSON.
func (a *app) noteJSON(f failure) {
	line, err := encodeJSON(map[string]errorBody{"error": newErrorBody(f)})
	if err != nil { // strings always encode
		a.noteText(f)
		return
	}
	a.note(string(line))
}
