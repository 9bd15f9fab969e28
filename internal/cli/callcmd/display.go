package callcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
	"github.com/toolreg/toolreg/internal/ui/markdown"
	"github.com/toolreg/toolreg/internal/ui/picture"
)

type printer struct {
	ios       *cli.IO
	person    *cli.Person
	raw       bool
	outputDir string // folder for image, audio and resource parts; "" means not to save them
	images    picture.Protocol
	streamed  bool // the output was streamed, so the result is not printed
}

// show prints a result for a person: its display, or its parts if one of them is not
// text.
func (p *printer) show(ctx context.Context, t *registry.Tool, r registry.Result) error {
	color, isMarkdown := p.ios.Color(p.ios.OutTTY), t.OutputMarkdown && !r.IsError && !r.Display.Plain
	d := r.Display
	switch {
	case d.Diff != nil && r.Summary != "" && p.person.Approved(d.Diff.FileDiff):
		return p.text(ui.Line(r.Summary))
	case d.Diff != nil:
		return p.text(rows(ui.Diff(ui.Visible(d.Diff.FileDiff)), color))
	case d.Todos != nil:
		return p.text(rows(checklist(d.Todos, p.ios.Width()), color))
	case !slices.ContainsFunc(r.Content, func(c registry.Content) bool { return c.Data != nil }):
		return p.text(p.prose(cmp.Or(d.Text, cli.ResultText(r)), isMarkdown, color))
	}
	if d.Text != "" && !t.IsMCP() { // the display of a server's tool is the JSON of its parts
		if err := p.text(p.prose(d.Text, isMarkdown, color)); err != nil {
			return err
		}
	}
	for _, c := range r.Content {
		var err error
		if c.Data != nil {
			err = p.showMedia(ctx, c)
		} else {
			err = p.text(p.prose(cli.PartText(c), isMarkdown && c.Type == registry.ContentText, color))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// markFailure prints on a terminal that the tool failed, below its output,
// because output alone often does not show that.
func (p *printer) markFailure(t *registry.Tool, r registry.Result) {
	if !r.IsError || r.ErrorCategory == registry.ErrorCancellation || !p.ios.ErrTTY || p.ios.JSON || p.ios.Quiet {
		return
	}
	text := " " + ui.Line(t.Name) + " failed"
	if r.Summary != "" && !strings.HasPrefix(r.Summary, t.ServerTool+" failed with ") &&
		(p.streamed || !strings.Contains(cli.ResultText(r), r.Summary)) {
		text += ": " + ui.Line(r.Summary)
	}
	p.ios.NoteSpans(ui.Span{Text: "✗" + text, Style: ui.Red})
}

// withoutNotice removes from a result the text about the error that ended the call,
// because the error is printed below it.
func withoutNotice(r registry.Result, err error) registry.Result {
	cut := func(text string) string {
		text = strings.TrimSpace(text)
		if text == r.Summary || r.ErrorCategory == registry.ErrorTimeout &&
			strings.HasSuffix(text, "; the server was asked to stop it") {
			return ""
		}
		return strings.TrimSuffix(text, "["+err.Error()+"]")
	}
	if r.Display.Text != "" {
		if r.Display.Text = cut(r.Display.Text); r.Display.Text == "" {
			r.Content = nil
		}
	}
	r.Content = slices.Clone(r.Content)
	for i, c := range r.Content {
		if c.Type == registry.ContentText {
			r.Content[i].Text = cut(c.Text)
		}
	}
	return r
}

// text writes text that is safe to show and ends its last line.
func (p *printer) text(text string) error {
	return p.ios.Out.WriteStyled(ui.EndLine(text))
}

func (p *printer) prose(text string, isMarkdown, color bool) string {
	if isMarkdown {
		return markdown.Render(text, markdown.Options{Width: p.ios.Width(), Color: color})
	}
	return ui.Visible(text)
}

func rows(lines [][]ui.Span, color bool) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(ui.Paint(l, color) + "\n")
	}
	return b.String()
}

// checklist formats a todo list; further rows of an entry are aligned with its
// text.
func checklist(todos []registry.Todo, width int) [][]ui.Span {
	var out [][]ui.Span
	for _, t := range todos {
		mark, text := ui.Span{Text: "[ ] "}, ui.Span{Text: ui.Line(t.Content)}
		switch t.Status {
		case "completed":
			mark, text.Style = ui.Span{Text: "[x] ", Style: ui.Green}, ui.Dim
		case "in_progress":
			mark, text.Style = ui.Span{Text: "[~] ", Style: ui.Yellow}, ui.Bold
		}
		for _, row := range ui.WrapSpans([]ui.Span{text}, max(width-len(mark.Text), 20)) {
			out = append(out, append([]ui.Span{mark}, row...))
			mark = ui.Span{Text: "    "}
		}
	}
	return out
}

// showMedia prints a line that describes a part with bytes, and shows an image if the
// terminal supports it. It prints the line in any case, because toolreg cannot know
// what the terminal displays.
func (p *printer) showMedia(ctx context.Context, c registry.Content) error {
	info, err := picture.Read(c.Data)
	if err != nil {
		return p.text(ui.Line(cli.PartText(c)))
	}
	name := string(c.Type)
	if c.URI != "" {
		name += " " + c.URI
	}
	name = fmt.Sprintf("[%s %s, %d x %d pixels, %d bytes; --output DIR saves it]",
		name, info.MIMEType, info.Width, info.Height, len(c.Data))
	if err := p.text(ui.Line(name)); err != nil || !p.ios.OutTTY || p.images == picture.None {
		return err
	}
	var b strings.Builder
	if err := picture.Write(ctx, &b, c.Data, p.images, p.screen()); err != nil {
		if context.Cause(ctx) != nil {
			return context.Cause(ctx)
		}
		return p.text("[it cannot be shown: " + ui.Line(err.Error()) + "]")
	}
	_, err = io.WriteString(p.ios.Out.Unescaped(), b.String()) // all escape sequences come from package picture
	return err
}

// screen describes the terminal on stdout.
func (p *printer) screen() picture.Screen {
	s := picture.Screen{Columns: p.ios.Width()}
	if f, ok := p.ios.Stdout().(*os.File); ok {
		_, s.Rows = ui.SizeOf(f)()
		s.Width, s.Height = ui.Pixels(f)
	}
	return s
}

// imageProtocol returns how images are shown, according to the flag --images, the
// setting display.images, or the environment.
func imageProtocol(config *cli.Config, flag, setting string) (picture.Protocol, error) {
	p, err := picture.Parse(cmp.Or(flag, setting), config.Getenv)
	if err != nil {
		return p, &cli.UsageError{Err: fmt.Errorf("--images: %w", err)}
	}
	return p, nil
}

// Document is the JSON of one call.
type Document struct {
	Tool          string                 `json:"tool"`                    // registered name
	OK            bool                   `json:"ok"`                      // the tool reported no error
	IsError       bool                   `json:"isError,omitempty"`       // the tool reported an error
	ErrorCategory registry.ErrorCategory `json:"errorCategory,omitempty"` // stage in which the call failed
	Summary       string                 `json:"summary,omitempty"`       // the result in a line
	// LLMContent is what the model reads: a string, or content blocks.
	LLMContent    any                 `json:"llmContent"`
	ReturnDisplay *registry.Display   `json:"returnDisplay,omitempty"`     // what a person sees instead
	Structured    json.RawMessage     `json:"structuredContent,omitempty"` // the tool's structured result, as sent
	Meta          json.RawMessage     `json:"_meta,omitempty"`             // metadata of an MCP server, as sent
	Locations     []registry.Location `json:"locations,omitempty"`         // files that the call read or changed
	DurationMs    int64               `json:"durationMs"`
	// Truncated says that the result was cut (limits.output, limits.answer).
	Truncated bool `json:"truncated,omitempty"`
	Cached    bool `json:"cached,omitempty"`   // the result comes from the cache (toolOptions)
	Confined  bool `json:"confined,omitempty"` // the program ran in the sandbox
	Attempts  int  `json:"attempts,omitempty"` // number of attempts, if more than one
}

// HasResult reports whether the outcome of a call is a result, with what the tool has returned until
// its time limit if that stopped it.
func HasResult(r registry.Result, err error) bool {
	return err == nil || r.IsError && errors.Is(err, exec.ErrTimeout)
}

// NewDocument returns the JSON of a result.
func NewDocument(t *registry.Tool, r registry.Result) Document {
	d := Document{
		Tool: t.Name, OK: !r.IsError, IsError: r.IsError, ErrorCategory: r.ErrorCategory, Summary: r.Summary,
		LLMContent: Content(r.Content), Structured: r.Structured, Meta: r.Meta, Locations: r.Locations,
		DurationMs: r.Duration.Milliseconds(), Truncated: r.Truncated,
		Cached: r.Cached, Confined: r.Confined, Attempts: r.Attempts,
	}
	if display := displayOf(&r); !display.IsZero() {
		d.ReturnDisplay = &display
	}
	return d
}

// displayOf returns what a person is shown of a result. If the tool provides no display,
// that is the text for the model, or if that is empty too, the summary.
func displayOf(r *registry.Result) registry.Display {
	if !r.Display.IsZero() {
		return r.Display
	}
	return registry.Display{Text: cmp.Or(r.Text(), r.Summary)}
}

// Content returns a string if the only part is plain text, and the parts
// otherwise.
func Content(parts []registry.Content) any {
	if len(parts) == 0 {
		return ""
	}
	if c := parts[0]; len(parts) == 1 && c.Type == registry.ContentText && c.Annotations == nil && c.Meta == nil {
		return c.Text
	}
	return parts
}

func (p *printer) printResult(ctx context.Context, t *registry.Tool, r registry.Result) error {
	if p.outputDir == "" {
		return p.writeResult(ctx, t, r, 0)
	}
	saved, err := cli.SaveParts(p.outputDir, t.Name, r.Content)
	// The tool has run: print the result even if files could not be saved.
	return errors.Join(p.writeResult(ctx, t, r, saved), err)
}

func (p *printer) writeResult(ctx context.Context, t *registry.Tool, r registry.Result, saved int) error {
	switch {
	case p.ios.JSON:
		return p.ios.PrintJSON(NewDocument(t, r))
	case p.raw:
		return cli.WriteRaw(p.ios.Results(), r.Content)
	case saved == 0 && (p.ios.OutTTY || p.ios.Color(false)):
		return p.show(ctx, t, r)
	case p.ios.OutTTY:
		_, err := io.WriteString(p.ios.Out, cli.ResultText(r))
		return err
	}
	return cli.WriteResult(p.ios.Results(), r)
}

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
// nothing, the notes, the error, and with --json always the result.
func (s *stream) finish(ctx context.Context, t *registry.Tool, r registry.Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case s.ios.JSON:
		return s.ios.PrintLine(resultEvent{"result", NewDocument(t, r)})
	case !s.any:
		return s.printResult(ctx, t, r)
	}
	s.streamed = true
	notes := ""
	for _, note := range r.Notes {
		notes += "[" + note + "]\n"
	}
	if !strings.HasSuffix(s.last, "\n") && (s.ios.OutTTY || notes != "") {
		notes = "\n" + notes
	}
	if _, err := io.WriteString(s.ios.Results(), notes); err != nil {
		return err
	}
	if r.IsError && r.ErrorCategory != registry.ErrorCancellation && r.Summary != "" && !s.ios.Quiet && !s.ios.ErrTTY {
		s.ios.Note(fmt.Sprintf("toolreg: %s: %s\n", t.Name, ui.Line(r.Summary)))
	}
	return nil
}

// tracer prints a line on stderr for each of several calls (call --trace). nil
// prints nothing.
type tracer struct{ ios *cli.IO }

const maxTraced = 120 // the maximum width of the arguments in columns

// call prints a finished call: its arguments, outcome and duration.
func (t *tracer) call(ctx context.Context, m Made) {
	if t == nil {
		return
	}
	line := " " + ui.Line(m.Name)
	if m.Found.Tool != nil {
		_, arguments, _ := strings.Cut(cli.CallLine("x", &m.Found.Tool.Definition, m.Params), " x ")
		line += " " + ui.Cut(ui.Line(arguments), maxTraced)
	}
	mark := ui.Span{Text: "✓", Style: ui.Green}
	why := ""
	switch {
	case m.Err != nil:
		mark, why = ui.Span{Text: "✗", Style: ui.Red}, ": "+cli.NewErrorBody(ctx, m.Err).Message
	case m.Result.IsError:
		mark, why = ui.Span{Text: "✗", Style: ui.Red},
			": "+cmp.Or(m.Result.Summary, text.FirstLine(m.Result.Text()), "the tool failed")
	}
	line = strings.TrimRight(line, " ") + fmt.Sprintf(" (%d ms)", m.Took.Milliseconds()) + ui.Line(why)
	t.ios.NoteSpans(mark, ui.Span{Text: line, Style: ui.Dim})
}
