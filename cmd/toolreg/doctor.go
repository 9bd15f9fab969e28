package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/terminal"
)

func newDoctorCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and say how to mend it",
		Long: `Look at the settings, trust, every source and server, schemas, programs, the state
and cache folders and the audit log, and say what is wrong and how to mend it. As
everywhere nothing of a project runs that is not trusted.

In a pipe each finding is one line: state (ok, info, warning, error), subject,
message and remedy, separated by tabs.
Exit codes: 0 (warnings at most), 2, 8 (something is wrong).`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), a) },
	}
}

// finding is one thing that doctor looked at.
type finding struct {
	State   string `json:"state"` // ok, info, warning, error
	Subject string `json:"subject"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// The states of a finding; those of diagnostics are the same words.
const (
	stateOK      = "ok"
	stateInfo    = "info"
	stateWarning = "warning"
	stateError   = "error"
)

// examination collects findings.
type examination struct {
	app      *app
	findings []finding
}

func (x *examination) add(state, subject, remedy, format string, args ...any) {
	x.findings = append(x.findings, finding{state, subject, fmt.Sprintf(format, args...), remedy})
}

func (x *examination) diagnostics(subject string, diags []registry.Diagnostic) {
	for _, d := range diags {
		about := subject
		if d.Source != "" {
			about = d.Source
		}
		x.findings = append(x.findings, finding{string(d.Severity), about, d.Message, d.Hint})
	}
}

func runDoctor(ctx context.Context, a *app) error {
	a.reports, a.counts, a.asksAll = true, true, true // findings say what warnings would
	x := &examination{app: a}
	x.add(stateOK, "toolreg", "", "version %s, %s, %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	x.folders()
	s, err := a.settings(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		x.settingsError(err)
	} else {
		x.settings(ctx, s)
		x.programs(ctx, s)
		if err := x.sources(ctx); err != nil {
			return err
		}
	}
	x.terminal()
	return x.report()
}

// report prints the findings; an error among them is exit code 8.
func (x *examination) report() error {
	a := x.app
	failed := false
	for _, f := range x.findings {
		failed = failed || f.State == stateError
	}
	if err := x.print(a, failed); err != nil {
		return err
	}
	if failed {
		return &reported{code: exitSourceFailed}
	}
	return nil
}

func (x *examination) print(a *app, failed bool) error {
	if a.globals.JSON {
		return a.printJSON(struct {
			OK       bool      `json:"ok"`
			Findings []finding `json:"findings"`
		}{!failed, x.findings})
	}
	if !a.outTTY {
		t := table{}
		for _, f := range x.findings {
			t.add(f.State, f.Subject, f.Message, f.Remedy)
		}
		return t.print(a)
	}
	marks := map[string]string{stateOK: "✓", stateInfo: "·", stateWarning: "!", stateError: "✗"}
	var b strings.Builder
	for _, f := range x.findings {
		fmt.Fprintf(&b, "%s %s: %s\n", marks[f.State], terminal.Line(f.Subject), indent(terminal.Visible(f.Message)))
		if f.Remedy != "" {
			fmt.Fprintf(&b, "    %s\n", terminal.Line(f.Remedy))
		}
	}
	_, err := io.WriteString(a.out, b.String())
	return err
}

// settingsError tells each mistake of the settings.
func (x *examination) settingsError(err error) {
	if e, ok := errors.AsType[*settings.Error](err); ok {
		for _, p := range e.Problems {
			hint := p.Hint
			if hint == "" {
				hint = "mend the file; docs/settings.md lists every setting"
			}
			p.Hint = ""
			x.add(stateError, "settings", hint, "%s", p.String())
		}
		return
	}
	x.add(stateError, "settings", "", "%s", err)
}

func (x *examination) settings(ctx context.Context, s *settings.Settings) {
	a := x.app
	x.add(stateOK, "settings", "", "project root %s, workspace %s", s.ProjectRoot, s.Workspace)
	x.diagnostics("settings", a.early)
	if p := s.Project; p != nil && p.Trusted {
		x.add(stateOK, "trust", "", "the settings of this project are trusted")
	} else if p != nil && p.Obstacle != "" {
		x.add(stateWarning, "trust", "toolreg trust status", "the settings of this project cannot be trusted as they are: %s", p.Obstacle)
	}
	if s.Audit.Enabled {
		x.auditLog(ctx, s)
	} else {
		x.add(stateInfo, "audit", "", "the log of calls is switched off (audit.enabled)")
	}
	for i := range s.ToolOptions {
		if o := &s.ToolOptions[i]; o.Pattern == "" || strings.TrimSpace(o.Pattern) != o.Pattern {
			x.add(stateWarning, "toolOptions", "write the name as toolreg list shows it", "%s: %q matches no tool", o.Origin, o.Pattern)
		}
	}
	set, err := a.hooks(ctx, s)
	if err != nil {
		x.add(stateError, "hooks", "see docs/running.md", "%s", err)
	} else if set != nil {
		x.add(stateOK, "hooks", "", "%d hooks", len(set.Hooks))
	}
}

// sources loads everything that there is.
func (x *examination) sources(ctx context.Context) error {
	a := x.app
	if err := a.setup(ctx); err != nil {
		x.settingsError(err)
		return nil
	}
	reg, err := a.all(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		x.settingsError(err)
		return nil
	}
	x.cache()
	for _, r := range a.sourceReports(reg, nil) {
		switch r.State {
		case registry.StateFailed:
			x.add(stateError, r.Name, x.remedyFor(r), "%s", r.Error)
		case registry.StateSkipped:
			x.add(stateInfo, r.Name, "", "not started: %s", r.Error)
		default:
			x.add(stateOK, r.Name, "", "%s in %d ms", counted(r.Tools, "tool"), r.DurationMs)
		}
	}
	for _, d := range append(reg.Diagnostics(), reg.CompileAll(ctx)...) {
		if d.Code != "source_failed" && d.Severity != registry.SeverityInfo {
			x.diagnostics("registry", []registry.Diagnostic{d})
		}
	}
	return nil
}

// remedyFor names the command that goes on from a failed source.
func (x *examination) remedyFor(r sourceReport) string {
	for _, s := range x.app.sources.servers {
		info := s.Info()
		if registry.MCPPrefix+info.Name != r.Name {
			continue
		}
		server := terminal.Line(info.Name)
		if info.State == mcpclient.StateNeedsLogin {
			return "toolreg servers login " + server
		}
		return "toolreg discover -v " + server + " shows what the server says; toolreg servers disable " + server + " leaves it out"
	}
	return "toolreg discover -v"
}
