// Package schemacmd implements the command schema, which prints declarations
// and checks them against providers' rules.
package schemacmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

type options struct {
	cli.Selection
	preset  string
	format  string
	encode  provider.Options
	lint    bool
	explain bool
	all     bool // formats, with lint

	deferral cli.Deferral
}

// New returns the command schema.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "schema [TOOL…]",
		Short: "Print declarations for a model provider",
		Long: "Print the declarations of all tools, or of those named, in registry order. A name\nmay be a glob such as 'read_*'.\n\nFormats:\n" + formatList() + "\n" + deferHelp + "\n" + lintHelp +
			"\nExit codes: 0, 2, 3 (no such tool or server), 8 (a source that may\nhave the tool failed, or with --strict-sources any source), 9 (--lint --strict).",
		Example: `  toolreg schema --format gemini
  toolreg schema read_file grep --format openai --request
  toolreg schema --format anthropic --request --defer auto
  toolreg schema --lint --strict`,
		ValidArgsFunction: complete.Args(e.Complete().Tools),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if o.lint && o.explain {
				return &cli.UsageError{Err: errors.New("--lint and --explain cannot be used together"), Hint: "--explain shows each schema before and after"}
			}
			if o.encode.GeminiParameters && o.encode.GeminiReference {
				return &cli.UsageError{Err: errors.New("--gemini-parameters and --gemini-reference cannot be used together"), Hint: "the Gemini CLI declares tools of MCP servers with parametersJsonSchema"}
			}
			if err := o.checkDefer(); err != nil {
				return err
			}
			o.all = !cmd.Flags().Changed("format")
			return run(cmd.Context(), e, o, argv)
		},
	}
	cli.PresetFlag(cmd, &o.preset)
	o.Flags(e, cmd, "strict-sources") // --strict means OpenAI's strict schemas
	cmd.Flags().StringVarP(&o.format, "format", "f", provider.DefaultFormat, "`format` of the declarations")
	complete.Flag(cmd, "format", complete.Formats)
	o.deferral.Flag(cmd, "which tools the model must search for")
	cmd.Flags().BoolVar(&o.encode.Request, "request", false, "wrap them as the API's tools field requires")
	cmd.Flags().BoolVar(&o.encode.Strict, "strict", false, "OpenAI strict schemas; with --lint: exit code 9 on errors and warnings")
	cmd.Flags().BoolVar(&o.lint, "lint", false, "report what providers would reject, ignore or change")
	cmd.Flags().BoolVar(&o.explain, "explain", false, "show what declaring changes in each schema")
	cmd.Flags().BoolVar(&o.encode.GeminiParameters, "gemini-parameters", false, "format gemini: declare MCP tools with parameters too")
	cmd.Flags().BoolVar(&o.encode.GeminiReference, "gemini-reference", false, "format gemini: print the declarations of the Gemini CLI 0.1.15, byte for byte")
	return cmd
}

func formatList() string {
	var b strings.Builder
	for _, f := range provider.Formats() {
		fmt.Fprintf(&b, "  %-18s %s\n", f.Name, f.Summary)
	}
	return b.String()
}

func run(ctx context.Context, e *cli.Env, o *options, names []string) error {
	format, err := provider.Lookup(o.format)
	if err != nil {
		return err
	}
	if format.Text && e.IO.JQ != nil && !o.lint && !o.explain {
		return &cli.UsageError{Err: fmt.Errorf("--jq cannot be used with format %s, which is text", format.Name), Hint: "format json-schema is JSON"}
	}
	if format.Name != "gemini" && !o.lint {
		if o.encode.GeminiParameters {
			warnIgnored(e.IO, "gemini_parameters_ignored", "--gemini-parameters", format)
		}
		if o.encode.GeminiReference {
			warnIgnored(e.IO, "gemini_reference_ignored", "--gemini-reference", format)
		}
	}
	s, err := e.Engine.Session(ctx, cli.SessionOptions{Options: engine.Options{Preset: o.preset, List: true}})
	if err != nil {
		return err
	}
	reg, tools, err := o.tools(ctx, s, names)
	if reg != nil {
		e.IO.DiagnoseExcept(s.Diagnostics(reg), err)
	}
	if err != nil {
		return err
	}
	if tools, err = offered(ctx, e.IO, s, reg, tools, len(names) > 0); err != nil {
		return err
	}
	defs := engine.Definitions(reg, tools)
	if o.encode.Registered, err = o.registered(ctx, s, format, defs); err != nil {
		return err
	}
	switch {
	case o.lint:
		return printLint(e.IO, o, format, defs, unusable(ctx, reg, tools), o.StrictFailure(reg))
	case o.explain:
		return printExplanations(e.IO, format, defs, o.encode)
	}
	if o.deferral.On() {
		err = o.printDeferred(ctx, e.IO, s, format, defs)
	} else {
		out, diags := format.Encode(defs, o.encode)
		e.IO.Diagnose(diags)
		err = Print(e.IO, format, out)
	}
	return cmp.Or(err, o.StrictFailure(reg))
}

// offered removes the tools whose every call is denied, and reports those that
// were named.
func offered(ctx context.Context, ios *cli.IO, s *engine.Session, reg *registry.Registry, tools []*registry.Tool, named bool) ([]*registry.Tool, error) {
	tools, denied, err := s.Offered(ctx, reg, tools)
	severity := registry.SeverityInfo
	if named {
		severity = registry.SeverityWarning
	}
	for _, h := range denied {
		ios.Warn(registry.Diagnostic{Severity: severity, Code: "tool_denied", Source: h.Source, Tool: h.Name,
			Message: fmt.Sprintf("tool %q is not declared: %s", h.Name, h.Reason), Hint: "set at " + h.Setting})
	}
	return tools, err
}

// warnIgnored warns that a flag for the format gemini has no effect.
func warnIgnored(ios *cli.IO, code, flag string, format provider.Format) {
	ios.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: code,
		Message: flag + " has no effect with format " + format.Name})
}

// registered returns the names of all tools in the registry; nil if they cannot affect
// the declared names. The whole registry is loaded only if the format does not accept a
// name unchanged.
func (o *options) registered(ctx context.Context, s *engine.Session, format provider.Format, defs []registry.Definition) ([]string, error) {
	formats := []provider.Format{format}
	if o.lint && o.all {
		formats = provider.Formats()
	}
	for _, f := range formats {
		if slices.ContainsFunc(defs, func(d registry.Definition) bool { return !f.Keeps(d.Name) }) {
			reg, err := s.All(ctx)
			if err != nil {
				return nil, err
			}
			return engine.Names(reg), nil
		}
	}
	return nil, nil
}

// Print prints declarations byte for byte as they were encoded, because prompt caches
// depend on that. On a terminal JSON is indented.
func Print(ios *cli.IO, format provider.Format, out provider.Output) error {
	switch {
	case format.Text:
		_, err := ios.Out.Write(out.Data)
		return err
	case ios.JQ != nil:
		return ios.PrintFiltered(text.EscapeJSON(out.Data))
	}
	return ios.PrintEncoded(out.Data)
}

// tools returns the tools with the names, or the selected tools if there are no
// names, in registry order. If there is a registry, it is returned even with an
// error.
func (o *options) tools(ctx context.Context, s *engine.Session, names []string) (*registry.Registry, []*registry.Tool, error) {
	if len(names) == 0 {
		reg, err := o.Load(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		return reg, o.Apply(reg.Tools()), nil
	}
	reg, tools, err := s.FindAll(ctx, names...)
	return reg, o.Apply(tools), err
}
