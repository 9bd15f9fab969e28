package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

func newPluginsCommand(a *app) *cobra.Command {
	list := func(cmd *cobra.Command, _ []string) error { return runPlugins(cmd.Context(), a) }
	cmd := &cobra.Command{
		Use:   "plugins",
		Short: "Plugins: state, scaffold, check",
		Long: `Show the plugins of this project, of the user and of plugins.paths: whether each
counts, and if not, why.

A plugin is a folder with a plugin.yaml, or an executable that answers
--toolreg-describe, in .toolreg/plugins of a trusted project or in the folder
plugins beside your settings. In a pipe each plugin is one line: id, state,
version, tools, path and reason, separated by tabs. Exit codes: 0, 2.`,
		Example: `  toolreg plugins
  toolreg plugins new weather --lang python
  toolreg plugins check .toolreg/plugins/weather`,
		Args: noArgs,
		RunE: list,
	}
	cmd.AddCommand(
		&cobra.Command{Use: "list", Short: "Show the plugins and their state", Args: noArgs, RunE: list},
		newPluginsNewCommand(a),
		newPluginsCheckCommand(a),
		&cobra.Command{Use: "schema", Short: "Print the JSON Schema of plugin.yaml", Args: noArgs, RunE: func(*cobra.Command, []string) error {
			if a.jq != nil {
				return a.printJSON(discover.PluginSchema())
			}
			_, err := a.out.Write(discover.PluginSchema())
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
	Hidden      int      `json:"hidden,omitempty"` // tools that settings keep out
}

func runPlugins(ctx context.Context, a *app) error {
	if err := a.setup(ctx); err != nil {
		return err
	}
	reg := a.load(ctx, a.sources.local, true)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	a.diagnose(slices.DeleteFunc(reg.Diagnostics(), func(d registry.Diagnostic) bool {
		return d.Code == "source_failed" || !strings.HasPrefix(d.Source, registry.PluginPrefix)
	}))
	states := a.pluginStates(reg)
	if a.globals.JSON {
		return a.printJSON(map[string][]pluginState{"plugins": states})
	}
	if len(states) == 0 {
		a.note("toolreg: no plugins; toolreg plugins new NAME makes one\n")
		return nil
	}
	t := table{header: []string{"ID", "STATE", "VERSION", "TOOLS", "PATH", "REASON"}}
	for _, s := range states {
		t.add(s.ID, s.State, s.Version, strconv.Itoa(len(s.Tools)), s.Path, s.Reason)
	}
	return t.print(a)
}

// pluginStates tells of each plugin. Reports come in the order of the sources,
// which is that of the plugins: two plugins may have one name.
func (a *app) pluginStates(reg *registry.Registry) []pluginState {
	reports := slices.DeleteFunc(reg.Reports(), func(r registry.SourceReport) bool { return !strings.HasPrefix(r.Name, registry.PluginPrefix) })
	states := make([]pluginState, len(a.sources.plugins))
	for i, p := range a.sources.plugins {
		var report registry.SourceReport
		if p.source != nil && len(reports) > 0 {
			report, reports = reports[0], reports[1:]
		}
		states[i] = p.state(reg, report)
	}
	return states
}

func (p *foundPlugin) state(reg *registry.Registry, report registry.SourceReport) pluginState {
	s := pluginState{ID: p.ID, Version: p.Version, Author: p.Author, Description: p.Description, Place: p.place, Path: p.Path,
		State: "ok", Tools: []string{}}
	switch {
	case p.untold:
		s.State, s.Reason = "untrusted", "its project is not trusted; toolreg trust grant allows it"
	case p.off != nil:
		s.State, s.Reason = "disabled", "plugins.disabled at "+p.off.Setting
	case len(p.Problems) > 0:
		s.State, s.Reason = "invalid", problemText(p.Problems)
	default:
		s.Reason = problemText(p.LeftOut()) // of single tools
	}
	if s.State != "ok" {
		return s
	}
	if report.Err != nil {
		s.State, s.Reason = "failed", report.Err.Error()
		return s
	}
	for _, d := range definitions(reg) {
		if d.Source == p.source.Name() {
			s.Tools = append(s.Tools, d.Name)
		}
	}
	for _, h := range reg.Hidden() {
		if h.Source == p.source.Name() {
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

type pluginsCheckOptions struct{ run bool }

func newPluginsCheckCommand(a *app) *cobra.Command {
	o := &pluginsCheckOptions{}
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Look for mistakes in a plugin",
		Long: `Check a plugin, or every plugin in a folder: the manifest against its schema, the
schemas of the tools, the examples against them, conditions, commands. All
mistakes are told at once, each with file and line. Nothing is run, unless --run
is given: then the factory or script is asked for its tools, too.

Exit codes: 0, 2, 9 (there are mistakes; warnings are none).`,
		Args: argsBetween(1, 1, "the folder of a plugin"),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return runPluginsCheck(cmd.Context(), a, o, argv[0])
		},
	}
	cmd.Flags().BoolVar(&o.run, "run", false, "run the factory or script as well")
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

func runPluginsCheck(ctx context.Context, a *app, o *pluginsCheckOptions, dir string) error {
	if err := a.setup(ctx); err != nil {
		return err
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.dir, dir)
	}
	found := discover.FindPlugins(ctx, discover.PluginPlace{Path: dir, Name: "argument", Required: true})
	checked := make([]checkedPlugin, len(found))
	ok := true
	for i, p := range found {
		checked[i] = a.checkPlugin(ctx, p, o.run)
		ok = ok && checked[i].OK
	}
	if len(found) == 0 {
		return &usageError{err: fmt.Errorf("no plugin in %s", dir), hint: "a plugin is a folder with plugin.yaml, or an executable"}
	}
	if err := a.printChecked(checked); err != nil {
		return err
	}
	if !ok {
		return &reported{code: exitCheckFailed}
	}
	return nil
}

func (a *app) checkPlugin(ctx context.Context, p *discover.Plugin, run bool) checkedPlugin {
	n, _ := p.Tools()
	mistakes := p.Check(ctx)
	c := checkedPlugin{ID: p.ID, Path: p.Path, Tools: n, OK: len(mistakes) == 0, Problems: []pluginProblem{}}
	add := func(severity registry.Severity, problems []document.Problem) {
		for _, one := range problems {
			c.Problems = append(c.Problems, pluginProblem{severity, one.File, one.Line, one.Col, one.Message, one.Hint, one.String()})
		}
	}
	add(registry.SeverityError, mistakes)
	if !c.OK {
		return c
	}
	add(registry.SeverityWarning, p.Lint(a.sources.env))
	if !run {
		return c
	}
	x := settings.NewExpander(a.set.ProjectRoot, a.environ)
	tools, diags, err := discover.NewPlugin(p, a.pluginOptions(a.set, x, a.sources.env, p.ID)).Discover(ctx)
	if err != nil {
		diags = append(diags, registry.Diagnostic{Severity: registry.SeverityError, Message: err.Error()})
	}
	c.Tools = len(tools)
	for _, d := range diags {
		c.OK = c.OK && d.Severity != registry.SeverityError
		c.Problems = append(c.Problems, pluginProblem{Severity: d.Severity, Message: d.Message, Hint: d.Hint, text: d.Message})
	}
	return c
}

func (a *app) printChecked(checked []checkedPlugin) error {
	if a.globals.JSON {
		return a.printJSON(map[string][]checkedPlugin{"plugins": checked})
	}
	t := table{header: []string{"PLUGIN", "RESULT", "MESSAGE"}}
	for _, c := range checked {
		for _, p := range c.Problems {
			t.add(c.ID, string(p.Severity), p.text)
		}
		if c.OK {
			t.add(c.ID, "ok", counted(c.Tools, "tool")+": "+c.Path)
		}
	}
	return t.print(a)
}
