// Package pluginscmd implements the command plugins, which shows, creates and
// checks plugins.
package pluginscmd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// New returns the command plugins.
func New(e *cli.Env) *cobra.Command {
	list := func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), e) }
	cmd := &cobra.Command{
		Use:   "plugins",
		Short: "Show, create and check plugins",
		Long: `Show the plugins of this project, of the user and of plugins.paths: whether each
is used and, if not, why.

A plugin is a folder with a plugin.yaml, or an executable that answers
--toolreg-describe, in .toolreg/plugins of a trusted project or in the folder
plugins next to your settings. In a pipe each plugin is one line: id, state,
version, tools, path and reason, separated by tabs. Exit codes: 0, 2.`,
		Example: `  toolreg plugins
  toolreg plugins new weather --lang python
  toolreg plugins check .toolreg/plugins/weather`,
		Args: cli.NoArgs,
		RunE: list,
	}
	cmd.AddCommand(
		&cobra.Command{Use: "list", Short: "Show the plugins and their state", Args: cli.NoArgs, RunE: list,
			Long: `Show the plugins of this project, of the user and of plugins.paths: whether each
is used and, if not, why.

Exit codes: 0, 2.`,
			Example: "  toolreg plugins list --json"},
		newNewCommand(e),
		newCheckCommand(e),
		&cobra.Command{Use: "schema", Short: "Print the JSON Schema of plugin.yaml", Args: cli.NoArgs,
			Long:    "Print the JSON Schema (draft 2020-12) of plugin.yaml, for editors and checks.\n\nExit codes: 0, 2.",
			Example: "  toolreg plugins schema > plugin.schema.json", RunE: func(*cobra.Command, []string) error {
				if e.IO.JQ != nil {
					return e.IO.PrintJSON(discover.PluginSchema())
				}
				_, err := e.IO.Out.Write(discover.PluginSchema())
				return err
			}},
	)
	return cmd
}

// pluginState is one plugin in the JSON of plugins.
type pluginState struct {
	ID          string   `json:"id"`
	Version     string   `json:"version,omitempty"`
	Author      string   `json:"author,omitempty"`
	Description string   `json:"description,omitempty"`
	Place       string   `json:"place"` // project, user, setting
	Path        string   `json:"path"`
	State       string   `json:"state"` // ok, disabled, untrusted, invalid, failed
	Reason      string   `json:"reason,omitempty"`
	Tools       []string `json:"tools"`
	Hidden      int      `json:"hidden,omitempty"` // number of tools that settings exclude
}

func run(ctx context.Context, e *cli.Env) error {
	s, err := e.Engine.Session(ctx, cli.SessionOptions{})
	if err != nil {
		return err
	}
	reg, err := s.Tools.Local(ctx)
	if err != nil {
		return err
	}
	e.IO.Diagnose(slices.DeleteFunc(reg.Diagnostics(), func(d registry.Diagnostic) bool {
		return d.Code == "source_failed" || !strings.HasPrefix(d.Source, registry.PluginPrefix)
	}))
	states := pluginStates(s.Plugins.Found, reg)
	if len(states) == 0 {
		e.IO.Notef("no plugins; toolreg plugins new NAME creates one")
	} else {
		e.IO.Summary("%s", text.Count(len(states), "plugin"))
	}
	t := ui.Table{Header: []string{"ID", "STATE", "VERSION", "TOOLS", "PATH", "REASON"},
		Whole: []string{"REASON", "PATH"}}
	for _, s := range states {
		t.Add(s.ID, s.State, s.Version, strconv.Itoa(len(s.Tools)), s.Path, s.Reason)
	}
	return e.IO.PrintResult(map[string][]pluginState{"plugins": states}, &t, "")
}

// pluginStates returns the state of each plugin. It matches reports to plugins by their
// order, which is the same, because two plugins may have the same name.
func pluginStates(plugins []sources.Plugin, reg *registry.Registry) []pluginState {
	reports := slices.DeleteFunc(reg.Reports(),
		func(r registry.SourceReport) bool { return !strings.HasPrefix(r.Name, registry.PluginPrefix) })
	states := make([]pluginState, len(plugins))
	for i, p := range plugins {
		var report registry.SourceReport
		if p.SourceName() != "" && len(reports) > 0 {
			report, reports = reports[0], reports[1:]
		}
		states[i] = stateOf(&p, reg, report)
	}
	return states
}

func stateOf(p *sources.Plugin, reg *registry.Registry, report registry.SourceReport) pluginState {
	s := pluginState{ID: p.ID, Version: p.Version, Author: p.Author, Description: p.Description,
		Place: p.Place, Path: p.Path, State: "ok", Tools: []string{}}
	switch {
	case p.Disabled != nil:
		s.State, s.Reason = "disabled", "plugins.disabled at "+p.Disabled.Setting
	case len(p.Problems) > 0:
		s.State, s.Reason = "invalid", problemText(p.Problems)
	case p.Untrusted:
		s.State, s.Reason = "untrusted", "its project is not trusted; run toolreg trust grant to allow it"
	default:
		s.Reason = problemText(p.LeftOut()) // problems of single tools
	}
	if s.State != "ok" {
		return s
	}
	if report.Err != nil {
		s.State, s.Reason = "failed", report.Err.Error()
		return s
	}
	for _, d := range engine.AllDefinitions(reg) {
		if d.Source == p.SourceName() {
			s.Tools = append(s.Tools, d.Name)
		}
	}
	for _, h := range reg.Hidden() {
		if h.Source == p.SourceName() {
			s.Hidden++
		}
	}
	return s
}

func problemText(problems []document.Problem) string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "; ")
}

type checkOptions struct{ run bool }

func newCheckCommand(e *cli.Env) *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Check a plugin for mistakes",
		Long: `Check a plugin, or every plugin in a folder: the manifest against its schema, the
schemas of the tools, the examples against them, conditions, commands. All
mistakes are reported at once, each with file and line. Nothing is run, unless --run
is given: then the factory or script is run to list its tools.

Exit codes: 0, 2, 9 (there are mistakes, or a program is missing;
warnings are ignored).`,
		Example: `  toolreg plugins check .toolreg/plugins/weather
  toolreg plugins check .toolreg/plugins --run`,
		Args:              cli.ArgsBetween(1, 1, "the folder of a plugin"),
		ValidArgsFunction: complete.Arg(complete.Dirs),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return runCheck(cmd.Context(), e, o, argv[0])
		},
	}
	cmd.Flags().BoolVar(&o.run, "run", false, "also run the factory or script")
	return cmd
}

// checkedPlugin is one plugin in the JSON of plugins check.
type checkedPlugin struct {
	ID       string          `json:"id"`
	Path     string          `json:"path"`
	OK       bool            `json:"ok"`
	Tools    int             `json:"tools"`
	Problems []pluginProblem `json:"problems"`
}

type pluginProblem struct {
	Severity registry.Severity `json:"severity"`
	File     string            `json:"file,omitempty"`
	Line     int               `json:"line,omitempty"`
	Column   int               `json:"column,omitempty"`
	Message  string            `json:"message"`
	Hint     string            `json:"hint,omitempty"`
	text     string
}

func runCheck(ctx context.Context, e *cli.Env, o *checkOptions, dir string) error {
	s, err := e.Engine.Session(ctx, cli.SessionOptions{})
	if err != nil {
		return err
	}
	dir = e.Config.Absolute(dir)
	place := discover.PluginPlace{Path: dir, Required: true}
	if rel, err := filepath.Rel(s.Settings.ProjectRoot, dir); err == nil && filepath.IsLocal(rel) {
		place.Root = s.Settings.ProjectRoot
	}
	found := discover.FindPlugins(ctx, place)
	checked := make([]checkedPlugin, len(found))
	first := map[string]string{} // path by id
	ok := true
	for i, p := range found {
		mistakes := p.Check(ctx)
		reserved, isReserved := sources.ReservedPluginID(p)
		path, isTaken := first[p.ID]
		switch {
		case len(p.Problems) > 0: // its id may be wrong
		case isReserved:
			mistakes = append(mistakes, reserved)
		case isTaken:
			mistakes = append(mistakes, sources.TakenPluginID(p, path))
		default:
			first[p.ID] = p.Path
		}
		checked[i] = checkPlugin(ctx, s, p, mistakes, o.run)
		ok = ok && checked[i].OK
	}
	if len(found) == 0 {
		return cli.Usage(fmt.Sprintf("no plugin in %s", dir),
			"a plugin is a folder with plugin.yaml, or an executable")
	}
	if err := printChecked(e.IO, checked); err != nil {
		return err
	}
	if !ok {
		return &cli.ExitError{Code: cli.ExitCheckFailed}
	}
	return nil
}

func checkPlugin(ctx context.Context, s *engine.Session, p *discover.Plugin,
	mistakes []document.Problem, run bool) checkedPlugin {
	n, _ := p.Tools()
	c := checkedPlugin{ID: p.ID, Path: p.Path, Tools: n, OK: true, Problems: []pluginProblem{}}
	add := func(severity registry.Severity, problems []document.Problem) {
		for _, one := range problems {
			c.OK = c.OK && severity != registry.SeverityError
			c.Problems = append(c.Problems,
				pluginProblem{severity, one.File, one.Line, one.Col, one.Message, one.Hint, one.String()})
		}
	}
	missing, warnings := p.Lint(s.Plugins.Options(p.ID).Env, builtin.Named)
	add(registry.SeverityError, append(mistakes, missing...))
	add(registry.SeverityWarning, warnings)
	if !run || !c.OK {
		return c
	}
	tools, diags, err := discover.NewPlugin(p, s.Plugins.Options(p.ID)).Discover(ctx)
	if err != nil {
		diags = append(diags, registry.Diagnostic{Severity: registry.SeverityError, Message: err.Error()})
	}
	c.Tools = len(tools)
	for _, d := range diags {
		c.OK = c.OK && d.Severity != registry.SeverityError
		c.Problems = append(c.Problems,
			pluginProblem{Severity: d.Severity, Message: d.Message, Hint: d.Hint, text: d.Message})
	}
	return c
}

func printChecked(ios *cli.IO, checked []checkedPlugin) error {
	t := ui.Table{Header: []string{"PLUGIN", "RESULT", "MESSAGE"}, Whole: []string{"MESSAGE"}}
	for _, c := range checked {
		for _, p := range c.Problems {
			t.Add(c.ID, string(p.Severity), p.text)
		}
		if c.OK {
			t.Add(c.ID, "ok", text.Count(c.Tools, "tool")+": "+c.Path)
		}
	}
	return ios.PrintResult(map[string][]checkedPlugin{"plugins": checked}, &t, "")
}
