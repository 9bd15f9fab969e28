package callcmd

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// tracer prints a line on stderr for each of several calls (call --trace). nil
// prints nothing.
type tracer struct{ ios *cli.IO }

// maxTraced is the maximum width of the arguments in columns.
const maxTraced = 120

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
		mark, why = ui.Span{Text: "✗", Style: ui.Red}, ": "+cmp.Or(m.Result.Summary, text.FirstLine(m.Result.Text()), "the tool failed")
	}
	line = strings.TrimRight(line, " ") + fmt.Sprintf(" (%d ms)", m.Took.Milliseconds()) + ui.Line(why)
	t.ios.NoteSpans(mark, ui.Span{Text: line, Style: ui.Dim})
}
