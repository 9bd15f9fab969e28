package doctorcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

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

// examination collects findings.
type examination struct {
	env      *cli.Env
	findings []finding
}

func (x *examination) add(state, subject, remedy, format string, args ...any) {
	x.findings = append(x.findings, finding{State: state, Subject: subject, Message: fmt.Sprintf(format, args...), Remedy: remedy})
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
		x.add(string(d.Severity), about, d.Hint, "%s", message)
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
