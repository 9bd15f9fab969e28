// Package doctorcmd implements the command doctor, which reports problems and
// how to fix them.
package doctorcmd

import (
	"cmp"
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/hooks"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/toolscan"
	"github.com/toolreg/toolreg/internal/ui"
)

// New returns the command doctor.
func New(e *cli.Env) *cobra.Command {
	fix := false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find problems and show how to fix them",
		Long: `Check the settings, trust, every source and server, what servers say, schemas,
programs, the state and cache folders and the audit log, and show what is wrong and
how to fix it. As always, nothing from an untrusted project runs.

With --fix toolreg asks about each remedy that is a toolreg command, such as
trusting the project, logging in to a server or correcting its entry, and runs it
if you agree. Then everything is checked again.

In a pipe each finding is one line: state (ok, info, warning, error), subject,
message and remedy, separated by tabs.
Exit codes: 0 (no errors), 2, 6 (--fix without a terminal), 8 (errors were
found).`,
		Example: "  toolreg doctor\n  toolreg doctor --fix",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fix {
				return runFix(cmd.Context(), e)
			}
			return run(cmd.Context(), e)
		},
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "ask about each remedy that is a command, and run it")
	return cmd
}

func run(ctx context.Context, e *cli.Env) error {
	x, err := examine(ctx, e)
	if err != nil {
		return err
	}
	return x.report()
}

// runFix runs the checks and offers to fix what can be fixed. Afterwards it
// runs all checks again.
func runFix(ctx context.Context, e *cli.Env) error {
	if e.IO.JSON {
		return cli.Usage("--fix and --json cannot be used together",
			"the JSON of toolreg doctor has the commands as fix")
	}
	x, err := examine(ctx, e)
	if err != nil {
		return err
	}
	outcome := x.report()
	if _, printed := outcome.(*cli.ExitError); outcome != nil && !printed {
		return outcome
	}
	ran, err := x.offer(ctx)
	if err != nil || !ran {
		return cmp.Or(err, outcome)
	}
	if x, err = examine(ctx, e); err != nil {
		return err
	}
	x.findings = slices.DeleteFunc(x.findings,
		func(f finding) bool { return f.State == stateOK || f.State == stateInfo })
	if len(x.findings) == 0 {
		e.IO.Notef("no problems are left")
	}
	return x.report()
}

func examine(ctx context.Context, e *cli.Env) (*examination, error) {
	x := &examination{env: e}
	x.addFinding(stateOK, "toolreg", "", "version %s, %s, %s/%s",
		e.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	x.folders()
	set, diags, err := e.Config.Load(ctx) // the findings include the diagnostics
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if err != nil {
		x.settingsError(err)
	} else {
		x.settings(ctx, set, diags)
		x.programs(ctx, set)
		x.sandbox(set)
		x.kept(ctx, set)
		if err := x.sources(ctx); err != nil {
			return nil, err
		}
	}
	x.terminal()
	return x, nil
}

func (x *examination) settingsError(err error) {
	if e, ok := errors.AsType[*document.Error](err); ok {
		for _, p := range e.Problems {
			hint := cmp.Or(p.Hint, "correct the file; toolreg settings show lists every setting, toolreg settings schema the allowed values")
			p.Hint = ""
			x.addFinding(stateError, "settings", hint, "%s", p.String())
			x.fixable(fixFile(p.File))
		}
		return
	}
	x.addFinding(stateError, "settings", registry.HintOf(err), "%s", err)
}

func (x *examination) settings(ctx context.Context, s *settings.Settings, diags []registry.Diagnostic) {
	x.addFinding(stateOK, "settings", "", "project root %s, workspace %s", s.ProjectRoot, s.Workspace)
	x.diagnostics("settings", slices.DeleteFunc(slices.Clone(diags), func(d registry.Diagnostic) bool {
		return d.Code == settings.CodeSourceFailed // reported for the source
	}))
	if note, how := x.env.Config.GeminiSettings(s); note != "" {
		x.addFinding(stateInfo, "gemini", how, "%s", note)
	}
	if p := s.Project; p != nil && p.Trusted {
		x.addFinding(stateOK, "trust", "", "the settings of this project are trusted")
	} else if p != nil && p.Obstacle != "" {
		x.addFinding(stateWarning, "trust", "toolreg trust status",
			"the settings of this project cannot be trusted as they are: %s", p.Obstacle)
	}
	if s.Audit.Enabled {
		x.auditLog(ctx, s)
	} else {
		x.addFinding(stateInfo, "audit", "", "the log of calls is disabled (audit.enabled)")
	}
	for i := range s.ToolOptions {
		if o := &s.ToolOptions[i]; o.Pattern == "" || strings.TrimSpace(o.Pattern) != o.Pattern {
			x.addFinding(stateWarning, "toolOptions", "write the name as toolreg list shows it",
				"%s: %q matches no tool", o.Origin, o.Pattern)
		}
	}
	if set := programs.NewHooks(ctx, s, values.NewExpander(s.ProjectRoot, x.env.Config.Environ),
		x.env.Config.Environ); set != nil {
		x.hooks(set)
	}
}

// hooks checks the program of each hook. If it cannot run, every call is refused.
func (x *examination) hooks(set *hooks.Set) {
	found := 0
	for i := range set.Hooks {
		h := &set.Hooks[i]
		argv, err := h.Expand()
		if err == nil {
			_, err = (process.Spec{Argv: argv, Dir: set.Dir, Env: h.Env}).Program()
		}
		if err != nil {
			x.addFinding(stateError, "hooks", cmp.Or(remedyForError(err), "correct the hook at "+h.Origin),
				"the %s cannot run: %s", h, err)
			continue
		}
		found++
	}
	if found > 0 {
		x.addFinding(stateOK, "hooks", "", "%s", text.Count(found, "hook"))
	}
}

// sources loads all sources and reports the state of each.
func (x *examination) sources(ctx context.Context) error {
	s, err := x.env.Engine.Session(ctx,
		cli.SessionOptions{Options: engine.Options{Counts: true, Kept: mcpclient.LookKept, Listed: &engine.Listed{}},
			Ask: true, InDocs: true})
	if err != nil {
		x.settingsError(err)
		return nil
	}
	reg, err := s.Tools.All(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		x.settingsError(err)
		return nil
	}
	on, off, err := s.Servers.Named()
	if err != nil {
		return err
	}
	x.cache(s)
	infos := append(sources.Infos(reg, on, nil), sources.APIInfos(ctx, reg, s.Servers.APIs())...)
	for _, r := range s.Tools.Reports(reg, off) {
		name, _ := registry.ServerOf(r.Name)
		i := slices.IndexFunc(infos, func(info mcpclient.Info) bool { return info.Name == name })
		needsLogin := i >= 0 && infos[i].State == mcpclient.StateNeedsLogin
		switch {
		case needsLogin:
			x.addFinding(stateError, r.Name, "toolreg servers login "+cli.Quote(ui.Line(name)),
				"%s", cli.WithoutSource(infos[i].Error, r.Name))
			x.fixable(fix{{"servers", "login", "--", name}})
		case r.State == registry.StateFailed:
			x.addFinding(stateError, r.Name, remedyFor(r.Name, reg.Failure(r.Name)),
				"%s", cli.WithoutSource(r.Error, r.Name))
			x.fixable(x.fixFor(s.Settings, r.Name))
		case r.State == registry.StateSkipped:
			x.addFinding(stateInfo, r.Name, "", "not started: %s", r.Error)
		default:
			x.addFinding(stateOK, r.Name, "", "%s in %d ms", text.Count(r.Tools, "tool"), r.DurationMs)
			if i >= 0 && infos[i].Deprecated != nil {
				x.addFinding(stateInfo, r.Name, "", "it uses %s", infos[i].DeprecatedText())
			}
		}
	}
	for _, d := range append(s.Tools.Diagnostics(reg), reg.CompileAll(ctx)...) {
		if d.Code != settings.CodeSourceFailed &&
			(d.Severity != registry.SeverityInfo || d.Code == registry.CodeNameKept) {
			x.diagnostics("registry", []registry.Diagnostic{d})
		}
	}
	x.keptNames(reg)
	return x.texts(ctx, s, reg, on)
}

// texts reports servers whose texts may steer a model.
func (x *examination) texts(ctx context.Context, s *engine.Session,
	reg *registry.Registry, on []*mcpclient.Source) error {
	found, _, err := s.Check(ctx, reg, on, s.Servers.APIs()...) // failed servers were reported
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		x.settingsError(err)
		return nil
	}
	var servers []string
	rules := map[string][]string{}
	severe := map[string]bool{}
	for _, f := range found.Findings {
		if rules[f.Server] == nil {
			servers = append(servers, f.Server)
		}
		rules[f.Server] = text.AppendNew(rules[f.Server], f.Rule)
		severe[f.Server] = severe[f.Server] || f.Severity == toolscan.High
	}
	for _, server := range servers {
		state := stateInfo
		if severe[server] {
			state = stateWarning
		}
		x.addFinding(state, "texts of "+server, "toolreg servers check "+cli.Quote(ui.Line(server)),
			"they may steer a model or hide something: %s", strings.Join(rules[server], ", "))
	}
	return nil
}

// keptNames reports the names of servers' tools that are kept although the tools are not
// there.
func (x *examination) keptNames(reg *registry.Registry) {
	var sources []string
	names := map[string][]string{}
	for _, h := range reg.Hidden() {
		if !h.Kept {
			continue
		}
		if names[h.Source] == nil {
			sources = append(sources, h.Source)
		}
		names[h.Source] = append(names[h.Source], h.Name)
	}
	for _, source := range sources {
		server, _ := registry.ServerOf(source)
		x.addFinding(stateInfo, source, "in rules, name "+server+"__"+names[source][0]+" instead of "+names[source][0],
			"names kept for its tools: %s", strings.Join(names[source], ", "))
	}
}

// remedyFor says how to fix a failed source: according to its error if
// possible, and otherwise by the command that shows more.
func remedyFor(source string, err error) string {
	remedy := remedyForError(err)
	name, ok := registry.ServerOf(source)
	if !ok {
		return cmp.Or(remedy, "toolreg discover -v")
	}
	server := cli.Quote(ui.Line(name))
	remedy = cmp.Or(remedy, "toolreg discover -v "+server+" shows more")
	return remedy + "; toolreg servers disable " + server + " disables it"
}

// remedyForError returns the remedy for the cause of a failure; "" if unknown.
func remedyForError(err error) string {
	if unset, ok := errors.AsType[*expand.UnsetError](err); ok {
		return "set the variable " + unset.Name + ", or give it a default as in ${" + unset.Name + ":-x}"
	}
	if start, ok := errors.AsType[*process.StartError](err); ok && start.Program != "" {
		if strings.ContainsRune(start.Program, '/') {
			return "correct the command, or put an executable file there"
		}
		return "install " + start.Program + ", or correct the command"
	}
	if _, ok := errors.AsType[*document.Error](err); ok {
		return "correct it there"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "start the server, or correct its address"
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "correct the host name, or check the network"
	}
	return ""
}
