package doctorcmd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
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

type reportJSON struct {
	OK       bool      `json:"ok"` // no finding is an error
	Findings []finding `json:"findings"`
}

func (x *examination) print(ios *cli.IO, failed bool) error {
	if ios.JSON {
		return ios.PrintJSON(reportJSON{!failed, x.findings})
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
		write("", ui.Span{Text: marks[f.State], Style: ui.StateStyle(f.State)}, ui.Span{Text: " "},
			ui.Span{Text: ui.Line(f.Subject), Style: ui.Bold}, ui.Span{Text: ": " + message})
		if more != "" {
			b.WriteString("  | " + cli.Indent(more) + "\n")
		}
		if f.Remedy != "" {
			write("    ", ui.Span{Text: ui.Line(f.Remedy), Style: ui.Cyan})
		}
	}
	return ios.Out.WriteStyled(b.String())
}

// finding is the result of one check.
type finding struct {
	State   string `json:"state"` // ok, info, warning, error
	Subject string `json:"subject"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
	Fix     fix    `json:"fix,omitempty"` // the remedy as commands, if it consists of commands
}

// The states of a finding, which are also those of diagnostics.
const (
	stateOK      = "ok"
	stateInfo    = "info"
	stateWarning = "warning"
	stateError   = "error"
)

type examination struct {
	env      *cli.Env
	findings []finding
}

func (x *examination) addFinding(state, subject, remedy, format string, args ...any) {
	x.findings = append(x.findings,
		finding{State: state, Subject: subject, Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

// fixable sets the fix of the last finding.
func (x *examination) fixable(f fix) { x.findings[len(x.findings)-1].Fix = f }

// diagnostics adds diagnostics that are not among the findings yet.
func (x *examination) diagnostics(subject string, diags []registry.Diagnostic) {
	for _, d := range diags {
		message := cli.NamingTool(d)
		if slices.ContainsFunc(x.findings, func(f finding) bool { return f.Message == message && f.Remedy == d.Hint }) {
			continue
		}
		about := subject
		if d.Source != "" {
			about = d.Source
		}
		x.addFinding(string(d.Severity), about, d.Hint, "%s", message)
		if d.Code == settings.CodeProjectUntrusted && d.Hint != "" {
			x.fixable(fix{{"trust", "grant"}})
		}
	}
}

// A fix is a remedy that consists of toolreg commands.
type fix [][]string

// String returns the commands as a person would type them.
func (f fix) String() string {
	lines := make([]string, len(f))
	for i, argv := range f {
		lines[i] = "toolreg " + cli.QuoteWords(argv)
	}
	return strings.Join(lines, " && ")
}

// offer asks about each fix and runs those that the person wants. It reports
// whether any was run.
func (x *examination) offer(ctx context.Context) (ran bool, err error) {
	tty, err := x.env.Person.Require(cli.NoTerminal("doctor --fix", "run the commands that toolreg doctor names"))
	if err != nil {
		return false, err
	}
	defer tty.Close()
	var offered []string
	for _, f := range x.findings {
		if len(f.Fix) == 0 || slices.Contains(offered, f.Fix.String()) {
			continue
		}
		offered = append(offered, f.Fix.String())
		yes, err := cli.AskYes(ctx, tty, ui.Query{
			About:    fmt.Sprintf("\n%s: %s\n", ui.Line(f.Subject), cli.Indent(ui.Visible(f.Message))),
			Question: "Run " + ui.Line(f.Fix.String()) + "?",
		})
		if err != nil {
			return ran, err
		}
		if !yes {
			continue
		}
		ran = true
		for _, argv := range f.Fix {
			if !x.env.RunCommand(ctx, argv...) {
				break
			}
		}
		if cause := context.Cause(ctx); cause != nil {
			return ran, cause
		}
	}
	return ran, nil
}

// fixFor returns the fix for a failed server or API, which is to disable it. The names of a project's servers are
// untrusted and must not be taken for flags.
func (x *examination) fixFor(set *settings.Settings, source string) fix {
	name, ok := registry.ServerOf(source)
	ours, _ := settingsfile.Paths(x.env, "") // not those of other programs
	if entry := set.Entry(name); !ok || entry == nil || !slices.Contains(ours, entry.Origin.Name) {
		return nil
	}
	return fix{{"servers", "disable", "--", name}}
}

// fixFile returns the fix that edits a file with mistakes; nil if file is not the path of
// a settings file.
func fixFile(file string) fix {
	if filepath.IsAbs(file) && settingsfile.IsNamed(file) {
		return fix{{"settings", "edit", "--scope", file}}
	}
	return nil
}
