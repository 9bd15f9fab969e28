// Package schemacmd implements the command schema, which prints declarations
// and checks them against providers' rules.
package schemacmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/provider/local"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

type options struct {
	Request
	preset  string
	format  string
	lint    bool
	explain bool
	all     bool // formats, with lint

	baseline      string
	since         string
	writeBaseline bool
}

// New returns the command schema.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "schema [TOOL…]",
		Short: "Print declarations for a model provider",
		Long: "Print the declarations of all tools, or of those named, in registry order. A name\nmay be a glob such as 'read_*'.\n\nFormats:\n" +
			formatList() + "\n" + deferHelp + "\n" + lintHelp +
			"\nExit codes: 0, 2, 3 (no such tool or server), 8 (a source that may\nhave the tool failed, or with --strict-sources any source), 9 (errors of --lint).",
		Example: `  toolreg schema --format gemini
  toolreg schema read_file grep --format openai --request
  toolreg schema --format anthropic --request --defer auto
  toolreg schema --lint --strict`,
		ValidArgsFunction: complete.Args(e.Complete().Tools()),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if o.lint && o.explain {
				return cli.Usage("--lint and --explain cannot be used together",
					"--explain shows each schema before and after")
			}
			if o.Encode.GeminiParameters && o.Encode.GeminiReference {
				return cli.Usage("--gemini-parameters and --gemini-reference cannot be used together",
					"the Gemini CLI declares tools of MCP servers with parametersJsonSchema")
			}
			switch {
			case o.baseline != "" && !o.lint:
				return cli.Usage("--baseline needs --lint", "it leaves out findings of --lint")
			case o.since != "" && (o.lint || o.explain):
				return cli.Usage("--since cannot be used with --lint or --explain", "it compares declarations")
			case o.writeBaseline && o.baseline == "":
				return cli.Usage("--write-baseline needs --baseline FILE",
					"the findings are written to this file")
			}
			if t := o.Encode.Target; t != "" {
				if !slices.Contains(local.Targets(), t) {
					return cli.Usage(fmt.Sprintf("unknown target %q", t),
						"one of "+strings.Join(local.Targets(), ", ")+"; LM Studio runs llama.cpp")
				}
				if !strings.HasPrefix(o.format, "openai") {
					return cli.Usage("--target needs --format openai or openai-responses",
						"servers of local models have these APIs")
				}
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
	cli.MarkRare(cmd.Flags(), "strict-sources")
	cmd.Flags().StringVarP(&o.format, "format", "f", provider.DefaultFormat, "`format` of the declarations")
	complete.Flag(cmd, "format", complete.Formats)
	o.Deferral.Flag(cmd, "which tools the model must search for")
	cmd.Flags().BoolVar(&o.Scripts, "scripts", false, "declare run_script too, which runs a script that calls tools")
	cmd.Flags().BoolVar(&o.Encode.Request, "request", false, "wrap them as the API's tools field requires")
	cmd.Flags().BoolVar(&o.Encode.Strict, "strict", false,
		"OpenAI strict schemas; with --lint: exit code 9 on warnings too")
	cmd.Flags().StringVar(&o.Encode.Target, "target", "",
		"adapt the schemas to a local `server`: llama.cpp, ollama or vllm")
	complete.Flag(cmd, "target", complete.Words(local.Targets()...))
	cmd.Flags().BoolVar(&o.lint, "lint", false, "report what providers would reject, ignore or change")
	cmd.Flags().StringVar(&o.baseline, "baseline", "", "with --lint: leave out the findings in `file`")
	cmd.Flags().BoolVar(&o.writeBaseline, "write-baseline", false,
		"with --baseline: write the current findings to the file")
	cmd.Flags().StringVar(&o.since, "since", "", "print what changed since the earlier output in `file`")
	complete.Flag(cmd, "since", complete.Files)
	cmd.Flags().BoolVar(&o.explain, "explain", false, "show what declaring changes in each schema")
	cmd.Flags().BoolVar(&o.Encode.GeminiParameters, "gemini-parameters", false,
		"format gemini: declare MCP tools with parameters too")
	cmd.Flags().BoolVar(&o.Encode.GeminiReference, "gemini-reference", false,
		"format gemini: print the declarations of the Gemini CLI 0.1.15, byte for byte")
	// They are for few endpoints; docs/providers.md describes them.
	cmd.Flags().Lookup("gemini-parameters").Hidden = true
	cmd.Flags().Lookup("gemini-reference").Hidden = true
	return cmd
}

func formatList() string {
	var b strings.Builder
	for _, f := range provider.Formats() {
		fmt.Fprintf(&b, "  %-19s  %s\n", f.Name, f.Summary)
	}
	return b.String()
}

func run(ctx context.Context, e *cli.Env, o *options, names []string) error {
	format, err := provider.Lookup(o.format)
	if err != nil {
		return err
	}
	if format.Text && e.IO.JQ != nil && !o.lint && !o.explain {
		return cli.Usage(fmt.Sprintf("--jq cannot be used with format %s, which is text", format.Name),
			"format json-schema is JSON")
	}
	if format.Name != "gemini" && !o.lint {
		if o.Encode.GeminiParameters {
			warnIgnored(e.IO, "gemini_parameters_ignored", "--gemini-parameters", format)
		}
		if o.Encode.GeminiReference {
			warnIgnored(e.IO, "gemini_reference_ignored", "--gemini-reference", format)
		}
	}
	s, err := e.Engine.Session(ctx, cli.SessionOptions{Options: engine.Options{Preset: o.preset, List: true}})
	if err != nil {
		return err
	}
	o.Tools, o.Format = names, format
	if !o.lint && !o.explain {
		out, reg, err := o.Declare(ctx, s, e.IO.DiagnoseExcept)
		if err != nil {
			return err
		}
		if o.since != "" {
			err = o.printSince(ctx, e, out)
		} else {
			err = Print(e.IO, format, out)
		}
		return cmp.Or(err, o.StrictFailure(reg))
	}
	if names, _, err = o.Names(ctx, s); err != nil {
		return err
	}
	reg, tools, err := o.offered(ctx, s, names, e.IO.DiagnoseExcept)
	if err != nil {
		return err
	}
	defs := engine.Definitions(reg, tools)
	formats := []provider.Format{format}
	if o.lint && o.all {
		formats = provider.Formats()
	}
	if o.Encode.Registered, err = registered(ctx, s, formats, defs); err != nil {
		return err
	}
	if o.lint {
		return o.printLint(ctx, e, s.Settings.ProjectRoot, format, defs, o.unusable(reg), o.StrictFailure(reg))
	}
	return printExplanations(e.IO, format, defs, o.Encode)
}

// warnIgnored warns that a flag for the format gemini has no effect.
func warnIgnored(ios *cli.IO, code, flag string, format provider.Format) {
	ios.Warn(registry.Warning(code, "", flag+" has no effect with format "+format.Name, ""))
}

// printSince prints what changed since the output in a file. For Anthropic that is the message that
// tells the model; if nothing changed, it is nothing.
func (o *options) printSince(ctx context.Context, e *cli.Env, out provider.Output) error {
	before, err := e.Config.ReadFile(ctx, o.since, cli.MaxArgument)
	if err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--since: %w", err),
			Hint: "name a file with an earlier output of this command"}
	}
	changes, err := o.Format.Since(before, out)
	if err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--since %s: %w", o.since, err),
			Hint: "it must have an earlier output of this command with the same format"}
	}
	if o.Format.Name != "anthropic" {
		return e.IO.PrintJSON(changes)
	}
	if changes.Empty() {
		return nil
	}
	return e.IO.PrintJSON(changes.AnthropicMessage())
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
