package doctorcmd

import (
	"strings"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/ui"
)

// report prints the findings; if one is an error, the exit code is 8.
func (x *examination) report() error {
	failed := false
	for _, f := range x.findings {
		failed = failed || f.State == stateError
	}
	if err := x.print(x.env.IO, failed); err != nil {
		return err
	}
	if failed {
		return &cli.ExitError{Code: cli.ExitSourceFailed}
	}
	return nil
}

// document is the JSON of doctor.
type document struct {
	OK       bool      `json:"ok"` // no finding is an error
	Findings []finding `json:"findings"`
}

func (x *examination) print(ios *cli.IO, failed bool) error {
	if ios.JSON {
		return ios.PrintJSON(document{!failed, x.findings})
	}
	if !ios.OutTTY {
		t := ui.Table{}
		for _, f := range x.findings {
			t.Add(f.State, f.Subject, f.Message, f.Remedy)
		}
		return ios.PrintTable(&t)
	}
	marks := map[string]string{stateOK: "✓", stateInfo: "·", stateWarning: "!", stateError: "✗"}
	var b strings.Builder
	write := func(indent string, spans ...ui.Span) {
		for i, row := range ui.WrapSpans(spans, ios.Width()-4) {
			if i > 0 {
				indent = "    "
			}
			b.WriteString(indent + ui.Paint(row, ios.Color(true)) + "\n")
		}
	}
	for _, f := range x.findings {
		message, more, _ := strings.Cut(ui.Visible(f.Message), "\n")
		write("", ui.Span{Text: marks[f.State], Style: ui.StateStyle(f.State)}, ui.Span{Text: " "}, ui.Span{Text: ui.Line(f.Subject), Style: ui.Bold},
			ui.Span{Text: ": " + message})
		if more != "" {
			b.WriteString("  | " + cli.Indent(more) + "\n")
		}
		if f.Remedy != "" {
			write("    ", ui.Span{Text: ui.Line(f.Remedy), Style: ui.Cyan})
		}
	}
	return ios.Out.WriteStyled(b.String())
}
