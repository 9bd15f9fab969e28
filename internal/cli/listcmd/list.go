// Package listcmd implements the command list. rpc uses its [Query], and the console of serve its [Page].
package listcmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

type options struct {
	Query
	preset   string
	versions bool
	inactive time.Duration
	examples bool
	costs    costOptions
	html     string // file for the page; "" means none
}

// New returns the command list.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "list [TOOL]",
		Short: "List the tools in the registry",
		Long: `List the tools in the registry, or those that a glob such as 'read_*' matches, or
show one tool in full.

They are sorted by display name, with --server by name. In a pipe each tool is one
line: name, source, category, display name and the first sentence of the description,
separated by tabs; the whole description is in the JSON.

` + costHelp + `
Exit codes: 0, 2, 3 (no such tool or server), 8 (a source that may have the tool
failed, or with --strict any source).`,
		Example: `  toolreg list
  toolreg list --cost --format openai --preset read-only
  toolreg list --source 'mcp:*' --json
  toolreg list read_file
  toolreg list 'github__*'
  toolreg list --html tools.html`,
		Args:              cli.ArgsBetween(0, 1, "at most one tool"),
		ValidArgsFunction: complete.Arg(e.Complete().Tools()),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if (o.versions || o.examples) && len(argv) == 0 {
				return cli.Usage("--versions and --examples need a tool", "toolreg list TOOL --versions")
			}
			o.costs.formatGiven = cmd.Flags().Changed("format")
			if o.costs.formatGiven && !o.costs.wanted && o.html == "" {
				return cli.Usage("--format needs --cost or --html",
					"toolreg schema --format prints declarations")
			}
			if err := o.costs.deferral.Check(); err != nil {
				return err
			}
			if o.costs.deferral.On() && !o.costs.wanted {
				return cli.Usage("--defer needs --cost", "toolreg schema --defer prints declarations")
			}
			if o.html != "" {
				if len(argv) > 0 || o.costs.wanted {
					return cli.Usage("--html cannot be used with a tool or --cost",
						"the page has every tool with its cost")
				}
				return runHTML(cmd.Context(), e, o)
			}
			e.IO.Page()
			if o.costs.wanted {
				return runCost(cmd.Context(), e, o, strings.Join(argv, ""))
			}
			if len(argv) == 1 && (!text.IsGlob(argv[0]) || o.versions || o.examples) {
				return runOne(cmd.Context(), e, o, argv[0])
			}
			return run(cmd.Context(), e, o, argv)
		},
	}
	o.Flags(e, cmd, "strict")
	cli.PresetFlag(cmd, &o.preset)
	cmd.Flags().DurationVar(&o.inactive, "inactive", 0,
		"only tools without a call in the audit log for this long, such as 720h")
	cmd.Flags().BoolVar(&o.All, "all", false,
		"also show hidden tools, and which setting hides them; with TOOL: what its override changes")
	cmd.Flags().BoolVar(&o.versions, "versions", false, "with TOOL: show every version")
	cli.MarkRare(cmd.Flags(), "versions")
	o.costs.flags(cmd)
	cmd.Flags().StringVar(&o.html, "html", "",
		"write a web page with params, policy, cost and differences from the lock file to this `file`")
	complete.Flag(cmd, "html", complete.Files)
	cmd.Flags().BoolVar(&o.examples, "examples", false, "with TOOL: show its examples as commands to paste")
	return cmd
}

func run(ctx context.Context, e *cli.Env, o *options, globs []string) error {
	s, err := e.Engine.Session(ctx,
		cli.SessionOptions{Options: engine.Options{Preset: o.preset, List: true}, InDocs: e.IO.HoldsDiagnostics()})
	if err != nil {
		return err
	}
	o.Tool = strings.Join(globs, "")
	f, err := o.findTools(ctx, s)
	if f.reg == nil {
		return err
	}
	if err != nil {
		e.IO.DiagnoseExcept(f.noticed, err)
		return err
	}
	e.Engine.NoteSlowServer(s, f.reg)
	if !e.IO.HoldsDiagnostics() {
		e.IO.Diagnose(f.noticed)
		e.IO.DiagnoseAll(f.off)
	}
	if f.tools, err = unusedTools(ctx, e.Config, f.tools, o.inactive); err != nil {
		return err
	}
	interrupted := context.Cause(ctx) // what was loaded before is printed
	if e.IO.JSON {
		err = o.document(f).print(e.IO, f.tools, o.All)
	} else {
		err = printTools(e.IO, f.tools, f.hidden(), o.All)
		e.Config.NoteGeminiSettings(s.Settings)
	}
	return cmp.Or(err, interrupted, o.StrictFailure(f.reg))
}

func runOne(ctx context.Context, e *cli.Env, o *options, name string) error {
	inDocs := e.IO.HoldsDiagnostics()
	s, err := e.Engine.Session(ctx,
		cli.SessionOptions{Options: engine.Options{Preset: o.preset, List: true}, InDocs: inDocs})
	if err != nil {
		return err
	}
	if err := o.CheckSource(s); err != nil {
		return err
	}
	reg, found, err := e.Engine.FindTools(ctx, s, name, inDocs)
	if err != nil {
		return err
	}
	tools := found
	if o.versions {
		tools = nil
		for _, t := range found {
			tools = append(tools, reg.Versions(t.Name)...)
		}
	}
	if tools, err = unusedTools(ctx, e.Config, o.Apply(tools), o.inactive); err != nil {
		return err
	}
	if err := o.printOne(ctx, e.IO, s, reg, name, tools); err != nil || !o.Strict {
		return err
	}
	if reg, err = s.Tools.All(ctx); err != nil {
		return err
	}
	return o.StrictFailure(reg)
}

func (o *options) printOne(ctx context.Context, ios *cli.IO, s *engine.Session,
	reg *registry.Registry, name string, tools []*registry.Tool) error {
	if ios.JSON {
		return Document{Diagnostics: cli.OrEmpty(s.Tools.Diagnostics(reg))}.print(ios, tools, o.All)
	}
	if len(tools) == 0 {
		ios.Notef("tool %q does not match the filters", name)
		return nil
	}
	if o.examples {
		return printExamples(ios, reg, tools)
	}
	p := &cli.Page{Width: ios.WrapWidth(), Color: ios.Color(ios.OutTTY)}
	for _, t := range tools {
		p.Space()
		showTool(ctx, p, t, engine.Definition(reg, t).Name)
		if o.All {
			showUpstream(ctx, p, t)
		}
	}
	return ios.Out.WriteStyled(p.String())
}

// unusedTools returns the tools that were not called for a time, according to the
// audit log; 0 returns all.
func unusedTools(ctx context.Context, config *cli.Config,
	tools []*registry.Tool, since time.Duration) ([]*registry.Tool, error) {
	switch {
	case since < 0:
		return nil, cli.Usage(fmt.Sprintf("--inactive %s: a time cannot be negative", since),
			"such as 720h for 30 days")
	case since == 0:
		return tools, nil
	}
	set, err := config.Settings(ctx)
	if err != nil {
		return nil, err
	}
	type key struct{ source, tool string }
	used, start := map[key]bool{}, time.Now().Add(-since)
	err = config.ScanAudit(ctx, set, func(entry *audit.Entry) {
		if entry.Made() && !entry.Time.Before(start) {
			used[key{entry.Source, cmp.Or(entry.ServerTool, entry.Upstream, entry.Tool)}] = true
		}
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(tools, func(t *registry.Tool) bool { return used[key{t.Source, t.OriginalName()}] }), nil
}
