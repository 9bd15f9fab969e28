// Package discovercmd implements the command discover, which shows the outcome
// of each source.
package discovercmd

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// New returns the command discover.
func New(e *cli.Env) *cobra.Command {
	o := &cli.Selection{}
	cmd := &cobra.Command{
		Use:   "discover [SERVER…]",
		Short: "Run discovery and report what each source returned",
		Long: `Run all sources, or only the MCP servers named, and report the state of each,
its tools, its time, and all problems found. Input schemas are compiled too, to find
tools that cannot be called.

With the setting cache.discovery a cached source is not run; its age is shown, and
--refresh runs it. --cached runs nothing and reports what is missing.

In a pipe each source is one line: name, state, tools, milliseconds, error and the
age of the cached list, separated by tabs.

Exit codes: 0, 2, 3 (no such server), 8 (a server that is named failed or, with
--strict, any source failed or has a tool that cannot be called).`,
		Example: `  toolreg discover
  toolreg discover github --refresh --json`,
		ValidArgsFunction: complete.Args(e.Complete().Servers()),
		RunE:              func(cmd *cobra.Command, argv []string) error { return run(cmd.Context(), e, o, argv) },
	}
	cmd.Flags().BoolVar(&o.Strict, "strict", false,
		"fail with exit code 8 if any source failed or has a tool that cannot be called")
	return cmd
}

func run(ctx context.Context, e *cli.Env, o *cli.Selection, servers []string) error {
	inDocs := e.IO.HoldsDiagnostics()
	s, err := e.Engine.Session(ctx,
		cli.SessionOptions{Options: engine.Options{List: true}, InDocs: inDocs, InServers: true, Infos: true})
	if err != nil {
		return err
	}
	reg, reports, err := s.Tools.Discovery(ctx, servers...)
	if err != nil {
		return err
	}
	diags := slices.Concat(s.Tools.Diagnostics(reg), reg.CompileAll(ctx))
	if !inDocs { // the table shows which sources failed
		e.IO.DiagnoseAll(slices.DeleteFunc(slices.Clone(diags),
			func(d registry.Diagnostic) bool { return d.Code == "source_failed" }))
	}
	if err := printReports(e.IO, reg, reports, diags); err != nil {
		return err
	}
	e.Config.NoteGeminiSettings(s.Settings)
	if err := o.NamedFailure(reg, servers); err != nil || !o.Strict {
		return err
	}
	return uncallable(reg, diags)
}

// uncallable returns an error that names the tools that sources gave and that cannot be
// called; nil if there are none.
func uncallable(reg *registry.Registry, diags []registry.Diagnostic) error {
	var names []string
	for _, h := range reg.Hidden() {
		if h.Err != nil && h.Source != registry.SourceBuiltin { // it is quarantined
			names = append(names, h.Name)
		}
	}
	for _, d := range diags {
		switch {
		case d.Code == "no_call_command":
			names = append(names, "all of the discovery command")
		case d.Severity == registry.SeverityError && d.Tool != "":
			names = append(names, d.Tool)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("%w: tools that cannot be called: %s",
		registry.ErrSourceFailed, strings.Join(slices.Compact(names), ", "))
}

// document is the JSON of discover.
type document struct {
	Sources     []engine.SourceReport `json:"sources"`
	Tools       int                   `json:"tools"` // in the registry
	Diagnostics []registry.Diagnostic `json:"diagnostics"`
}

func printReports(ios *cli.IO, reg *registry.Registry, reports []engine.SourceReport,
	diags []registry.Diagnostic) error {
	t := ui.Aged{
		Table: ui.Table{Header: []string{"SOURCE", "STATE", "TOOLS", "TIME", "ERROR"}, Whole: []string{"ERROR"}},
	}
	failed := 0
	for _, r := range reports {
		if r.State == registry.StateFailed {
			failed++
		}
		elapsed := strconv.FormatInt(r.DurationMs, 10)
		switch {
		case ios.OutTTY && r.CachedAt != nil:
			elapsed = ""
		case ios.OutTTY && r.DurationMs == 0:
			elapsed = "<1ms"
		case ios.OutTTY:
			elapsed = (time.Duration(r.DurationMs) * time.Millisecond).String()
		}
		t.AddAged(r.CachedAt, r.AgeMs, r.Name, string(r.State),
			strconv.Itoa(r.Tools), elapsed, cli.WithoutSource(r.Error, r.Name))
	}
	ios.Summary("%s from %s", text.Count(reg.Len(), "tool"), cli.WithFailed(len(reports), "source", failed))
	return ios.PrintResult(document{reports, reg.Len(), cli.OrEmpty(diags)}, t.For(ios.OutTTY), "")
}
