package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/declare"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/terminal"
)

type schemaOptions struct {
	selection
	format  string
	encode  declare.Options
	lint    bool
	explain bool
	all     bool // formats, with lint
}

func newSchemaCommand(a *app) *cobra.Command {
	o := &schemaOptions{}
	cmd := &cobra.Command{
		Use:   "schema [TOOL…]",
		Short: "Print declarations for a model provider",
		Long: "Print the declarations of all tools, or of those named, in registry order.\n\nFormats:\n" + formatList() + "\n" + lintHelp +
			"\nExit codes: 0, 2, 3 (no such tool), 8 (a source failed that a missing tool may be\nof, or with --strict-sources any), 9 (--lint --strict).",
		Example: `  toolreg schema --format gemini
  toolreg schema read_file grep --format openai --request
  toolreg schema --lint --strict`,
		RunE: func(cmd *cobra.Command, argv []string) error {
			if o.lint && o.explain {
				return &usageError{err: errors.New("--lint and --explain exclude each other"), hint: "--explain shows each schema before and after"}
			}
			o.all = !cmd.Flags().Changed("format")
			return runSchema(cmd.Context(), a, o, argv)
		},
	}
	presetFlag(a, cmd.Flags())
	o.flags(cmd.Flags(), "strict-sources") // --strict is the word for OpenAI's strict schemas
	cmd.Flags().StringVarP(&o.format, "format", "f", declare.DefaultFormat, "`format` of the declarations")
	cmd.Flags().BoolVar(&o.encode.Request, "request", false, "wrap them to what the API's tools field takes")
	cmd.Flags().BoolVar(&o.encode.Strict, "strict", false, "OpenAI strict schemas; with --lint: exit code 9 on errors and warnings")
	cmd.Flags().BoolVar(&o.lint, "lint", false, "tell what providers would refuse, ignore or change")
	cmd.Flags().BoolVar(&o.explain, "explain", false, "show what declaring changes in each schema")
	cmd.Flags().BoolVar(&o.encode.GeminiParameters, "gemini-parameters", false, "format gemini: declare MCP tools by parameters too")
	return cmd
}

func formatList() string {
	var b strings.Builder
	for _, f := range declare.Formats() {
		fmt.Fprintf(&b, "  %-18s %s\n", f.Name, f.Summary)
	}
	return b.String()
}

func runSchema(ctx context.Context, a *app, o *schemaOptions, names []string) error {
	format, err := declare.Lookup(o.format)
	if err != nil {
		return err
	}
	if o.encode.GeminiParameters && format.Name != "gemini" && !o.lint {
		a.warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "gemini_parameters_ignored",
			Message: "--gemini-parameters is for format gemini; format " + format.Name + " is declared as usual"})
	}
	reg, tools, err := a.named(ctx, &o.selection, names)
	if err != nil {
		return err
	}
	a.diagnose(reg.Diagnostics())
	defs := definitionsOf(reg, tools)
	switch {
	case o.lint:
		return a.printLint(o, format, defs, unusable(ctx, reg, tools), o.strictFailure(reg))
	case o.explain:
		return a.printExplanations(format, defs, o.encode)
	}
	out, diags := format.Encode(defs, o.encode)
	a.diagnose(a.naming(diags))
	if err := a.printDeclarations(format, out); err != nil {
		return err
	}
	return o.strictFailure(reg)
}

// naming puts the tool's name into the text of diagnostics that do not say it;
// JSON has a field for it.
func (a *app) naming(diags []registry.Diagnostic) []registry.Diagnostic {
	if a.globals.JSON {
		return diags
	}
	out := slices.Clone(diags)
	for i, d := range out {
		if d.Tool != "" && !strings.Contains(d.Message, d.Tool) {
			out[i].Message = d.Tool + ": " + d.Message
		}
	}
	return out
}

// printDeclarations prints the bytes as they were encoded: caches of prompts
// hang on them.
func (a *app) printDeclarations(format declare.Format, out declare.Output) error {
	data := out.Data
	if !format.Text {
		if a.jq != nil {
			return a.jq.print(a.out, terminal.EscapeJSON(data))
		}
		data = append(terminal.EscapeJSON(data), '\n')
	}
	_, err := a.out.Write(data)
	return err
}

// named returns the tools of the names, or of the selection where there are no
// names, in registry order.
func (a *app) named(ctx context.Context, s *selection, names []string) (*registry.Registry, []*registry.Tool, error) {
	if len(names) == 0 {
		reg, err := a.registryFor(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		return reg, s.apply(reg.Tools()), nil
	}
	if err := a.setup(ctx); err != nil {
		return nil, nil, err
	}
	reg := a.load(ctx, a.sources.local, true)
	wanted, err := lookupAll(reg, names)
	if err != nil { // names of servers' tools depend on all servers
		if reg, err = a.all(ctx); err != nil {
			return nil, nil, err
		}
		wanted, err = lookupAll(reg, names)
		if a.renewFor(ctx, reg, nil, err, false) {
			if reg, err = a.all(ctx); err != nil {
				return nil, nil, err
			}
			wanted, err = lookupAll(reg, names)
		}
		if err != nil {
			a.diagnose(reg.Diagnostics())
			return nil, nil, blame(reg, err)
		}
	}
	var tools []*registry.Tool
	for _, t := range reg.Tools() {
		for _, v := range reg.Versions(t.Name) {
			if wanted[v] && s.matches(v) {
				tools = append(tools, v)
			}
		}
	}
	return reg, tools, nil
}

func lookupAll(reg *registry.Registry, names []string) (map[*registry.Tool]bool, error) {
	out := map[*registry.Tool]bool{}
	for _, n := range names {
		t, err := reg.Lookup(n)
		if err != nil {
			return nil, err
		}
		out[t] = true
	}
	return out, nil
}
