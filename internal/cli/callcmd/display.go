package callcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/ui"
	"github.com/toolreg/toolreg/internal/ui/markdown"
	"github.com/toolreg/toolreg/internal/ui/picture"
)

// printer prints the result of one call.
type printer struct {
	ios       *cli.IO
	person    *cli.Person
	raw       bool
	outputDir string // folder in which parts with bytes are saved; "" means not to save them
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
	case !hasMedia(r.Content):
		text := d.Text
		if text == "" {
			text = cli.ResultText(r)
		}
		return p.text(p.prose(text, isMarkdown, color))
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

// showsLive reports whether a person sees the output of a tool while it runs.
func (p *printer) showsLive(t *registry.Tool) bool {
	return p.ios.OutTTY && !p.ios.JSON && p.outputDir == "" && t.CanUpdateOutput
}

// markFailure prints on a terminal that the tool failed, below its output,
// because output alone often does not show that.
func (p *printer) markFailure(t *registry.Tool, r registry.Result) {
	if !r.IsError || r.ErrorCategory == registry.ErrorCancellation || !p.ios.ErrTTY || p.ios.JSON || p.ios.Quiet {
		return
	}
	text := " " + ui.Line(t.Name) + " failed"
	if r.Summary != "" && !strings.HasPrefix(r.Summary, t.ServerTool+" failed with ") && (p.streamed || !strings.Contains(cli.ResultText(r), r.Summary)) {
		text += ": " + ui.Line(r.Summary)
	}
	p.ios.NoteSpans(ui.Span{Text: "✗" + text, Style: ui.Red})
}

// withoutNotice removes from a result the text about the error that ended the call,
// because the error is printed below it.
func withoutNotice(r registry.Result, err error) registry.Result {
	cut := func(text string) string {
		text = strings.TrimSpace(text)
		if text == r.Summary || r.ErrorCategory == registry.ErrorTimeout && strings.HasSuffix(text, "; the server was asked to stop it") {
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
	return p.ios.Out.WriteStyled(cli.EndLine(text))
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

func hasMedia(parts []registry.Content) bool {
	for _, c := range parts {
		if c.Data != nil {
			return true
		}
	}
	return false
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
	name = fmt.Sprintf("[%s %s, %d x %d pixels, %d bytes; --output DIR saves it]", name, info.MIMEType, info.Width, info.Height, len(c.Data))
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
