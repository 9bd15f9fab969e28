package callcmd

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/terminal"
	"github.com/toolreg/toolreg/internal/text"
)

// tracer prints a line on stderr for each of several calls (call --trace). nil
// prints nothing.
type tracer struct{ env *cli.Env }

// maxTraced is the maximum width of the arguments in columns.
const maxTraced = 120

// call prints a finished call: its arguments, outcome and duration.
func (t *tracer) call(ctx context.Context, name string, f engine.Found, params []byte, r registry.Result, err error, took time.Duration) {
	if t == nil {
		return
	}
	line := " " + terminal.Line(name)
	if f.Tool != nil {
		_, arguments, _ := strings.Cut(cli.CallLine("x", &f.Tool.Definition, params), " x ")
		line += " " + terminal.Cut(terminal.Line(arguments), maxTraced)
	}
	mark := terminal.Span{Text: "✓", Style: terminal.Green}
	why := ""
	switch {
	case err != nil:
		mark, why = terminal.Span{Text: "✗", Style: terminal.Red}, ": "+cli.NewErrorBody(ctx, err).Message
	case r.IsError:
		mark, why = terminal.Span{Text: "✗", Style: terminal.Red}, ": "+cmp.Or(r.Summary, text.FirstLine(r.Text()), "the tool failed")
	}
	line = strings.TrimRight(line, " ") + fmt.Sprintf(" (%d ms)", took.Milliseconds()) + terminal.Line(why)
	t.env.IO.NoteSpans(mark, terminal.Span{Text: line, Style: terminal.Dim})
}
