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
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
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
	line := " " + ui.Line(name)
	if f.Tool != nil {
		_, arguments, _ := strings.Cut(cli.CallLine("x", &f.Tool.Definition, params), " x ")
		line += " " + ui.Cut(ui.Line(arguments), maxTraced)
	}
	mark := ui.Span{Text: "✓", Style: ui.Green}
	why := ""
	switch {
	case err != nil:
		mark, why = ui.Span{Text: "✗", Style: ui.Red}, ": "+cli.NewErrorBody(ctx, err).Message
	case r.IsError:
		mark, why = ui.Span{Text: "✗", Style: ui.Red}, ": "+cmp.Or(r.Summary, text.FirstLine(r.Text()), "the tool failed")
	}
	line = strings.TrimRight(line, " ") + fmt.Sprintf(" (%d ms)", took.Milliseconds()) + ui.Line(why)
	t.env.IO.NoteSpans(mark, ui.Span{Text: line, Style: ui.Dim})
}
