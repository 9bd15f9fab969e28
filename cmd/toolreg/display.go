package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/toolreg/toolreg/internal/markdown"
	"github.com/toolreg/toolreg/internal/picture"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/terminal"
)

// show prints a result for a person (spec section 8.7): its display, or its
// parts where one of them is no text.
func (a *app) show(ctx context.Context, t *registry.Tool, r registry.Result) error {
	color, isMarkdown := a.color(a.outTTY), t.OutputMarkdown && !r.IsError && !r.Display.Plain
	d := r.Display
	switch {
	case d.Diff != nil:
		return a.print(rows(terminal.Diff(terminal.Visible(d.Diff.FileDiff)), color))
	case d.Todos != nil:
		return a.print(rows(checklist(d.Todos, terminalWidth(a)), color))
	case !hasMedia(r.Content):
		text := d.Text
		if text == "" {
			text = contentText(r)
		}
		return a.print(a.prose(text, isMarkdown, color))
	}
	if d.Text != "" && !t.IsMCP() { // a server's display is the JSON of its parts
		if err := a.print(a.prose(d.Text, isMarkdown, color)); err != nil {
			return err
		}
	}
	for _, c := range r.Content {
		var err error
		if c.Data != nil {
			err = a.showMedia(ctx, c)
		} else {
			err = a.print(a.prose(partText(c), isMarkdown && c.Type == registry.ContentText, color))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// print writes text that is safe to show and ends its last line.
func (a *app) print(text string) error {
	_, err := io.WriteString(a.out, endLine(text))
	return err
}

func (a *app) prose(text string, isMarkdown, color bool) string {
	if isMarkdown {
		return markdown.Render(text, markdown.Options{Width: terminalWidth(a), Color: color})
	}
	return terminal.Visible(text)
}

func rows(lines [][]terminal.Span, color bool) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(terminal.Paint(l, color) + "\n")
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

// checklist lays a todo list out, further rows of an entry below its text.
func checklist(todos []registry.Todo, width int) [][]terminal.Span {
	var out [][]terminal.Span
	for _, t := range todos {
		mark, text := terminal.Span{Text: "[ ] "}, terminal.Span{Text: terminal.Line(t.Content)}
		switch t.Status {
		case "completed":
			mark, text.Style = terminal.Span{Text: "[x] ", Style: terminal.Green}, terminal.Dim
		case "in_progress":
			mark, text.Style = terminal.Span{Text: "[~] ", Style: terminal.Yellow}, terminal.Bold
		}
		for _, row := range terminal.WrapSpans([]terminal.Span{text}, max(width-len(mark.Text), 20)) {
			out = append(out, append([]terminal.Span{mark}, row...))
			mark = terminal.Span{Text: "    "}
		}
	}
	return out
}

// showMedia names a part that holds bytes, and shows an image where the terminal
// can. It is named in any case: what the terminal makes of it nobody tells us.
func (a *app) showMedia(ctx context.Context, c registry.Content) error {
	info, err := picture.Read(c.Data)
	if err != nil {
		return a.print(terminal.Line(partText(c)))
	}
	name := string(c.Type)
	if c.URI != "" {
		name += " " + c.URI
	}
	name = fmt.Sprintf("[%s %s, %d x %d pixels, %d bytes; --output DIR saves it]", name, info.MIMEType, info.Width, info.Height, len(c.Data))
	if err := a.print(terminal.Line(name)); err != nil || !a.outTTY || a.images == picture.None {
		return err
	}
	var b strings.Builder
	if err := picture.Write(ctx, &b, c.Data, a.images, a.outScreen()); err != nil {
		if context.Cause(ctx) != nil {
			return context.Cause(ctx)
		}
		return a.print("[it cannot be shown here: " + terminal.Line(err.Error()) + "]")
	}
	_, err = io.WriteString(a.out, b.String())
	return err
}

// outScreen is the terminal on stdout.
func (a *app) outScreen() picture.Screen {
	s := picture.Screen{Columns: terminalWidth(a)}
	if f, ok := a.stdout.(*os.File); ok {
		_, s.Rows = sizeOf(f)()
		s.Width, s.Height = terminal.Pixels(f)
	}
	return s
}

// chooseImages decides how images are shown: --images, then the setting
// display.images, then what the environment tells of the terminal.
func (a *app) chooseImages(flag string) error {
	env := func(name string) string { v, _ := lookupEnv(a.environ, name); return v }
	choice := flag
	if choice == "" && a.set != nil {
		choice = a.set.Images
	}
	var err error
	if a.images, err = picture.Parse(choice, env); err != nil {
		return &usageError{err: fmt.Errorf("--images: %w", err)}
	}
	return nil
}
