package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/terminal"
)

type listOptions struct {
	selection
	all      bool
	versions bool
	inactive time.Duration
	examples bool
	costs    costOptions
}

func newListCommand(a *app) *cobra.Command {
	o := &listOptions{}
	cmd := &cobra.Command{
		Use:   "list [TOOL]",
		Short: "List the tools in the registry",
		Long: `List the tools in the registry, or show one tool in full.

In a pipe each tool is one line: name, source, category and description,
separated by tabs.

` + costHelp + `
Exit codes: 0, 2, 3 (no such tool), 8 (a source failed that a missing tool may be
of, or with --strict any).`,
		Example: `  toolreg list
  toolreg list --cost --format openai --preset read-only
  toolreg list --source 'mcp:*' --json
  toolreg list read_file`,
		Args: argsBetween(0, 1, "at most one tool"),
		RunE: func(cmd *cobra.Command, argv []string) error {
			a.reports = a.globals.JSON && a.jq == nil
			if (o.versions || o.examples) && len(argv) == 0 {
				return &usageError{err: errors.New("--versions and --examples want a tool"), hint: "toolreg list TOOL --versions"}
			}
			if cmd.Flags().Changed("format") && !o.costs.wanted {
				return &usageError{err: errors.New("--format wants --cost"), hint: "toolreg schema --format prints declarations"}
			}
			if o.costs.wanted {
				return runCost(cmd.Context(), a, o, strings.Join(argv, ""))
			}
			if len(argv) == 1 {
				return runListOne(cmd.Context(), a, o, argv[0])
			}
			return runList(cmd.Context(), a, o)
		},
	}
	o.flags(cmd.Flags(), "strict")
	presetFlag(a, cmd.Flags())
	cmd.Flags().DurationVar(&o.inactive, "inactive", 0, "only tools without a call in the audit log for this long, such as 720h")
	cmd.Flags().BoolVar(&o.all, "all", false, "show hidden tools too, and which setting hides them")
	cmd.Flags().BoolVar(&o.versions, "versions", false, "with TOOL: every version of it")
	o.costs.flags(cmd.Flags())
	cmd.Flags().BoolVar(&o.examples, "examples", false, "with TOOL: its examples as commands to paste")
	return cmd
}

// listed is one tool in the JSON of list.
type listed struct {
	*registry.Definition
	Fingerprint string `json:"fingerprint"`
}

type listDocument struct {
	Tools       []listed              `json:"tools"`
	Hidden      []registry.Hidden     `json:"hidden,omitempty"`
	Diagnostics []registry.Diagnostic `json:"diagnostics"`
}

func runList(ctx context.Context, a *app, o *listOptions) error {
	reg, err := a.registryFor(ctx, &o.selection)
	if err != nil {
		return err
	}
	if !a.reports {
		a.diagnose(reg.Diagnostics())
	}
	tools, err := a.withoutUsed(ctx, o.apply(reg.Sorted()), o.inactive)
	if err != nil {
		return err
	}
	if a.globals.JSON {
		doc := listDocument{Tools: listedTools(tools), Diagnostics: a.noticed(reg)}
		if o.all {
			doc.Hidden = reg.Hidden()
		}
		err = a.printJSON(doc)
	} else {
		err = printTools(a, tools, reg.Hidden(), o.all)
	}
	if err != nil {
		return err
	}
	return o.strictFailure(reg)
}

func listedTools(tools []*registry.Tool) []listed {
	out := make([]listed, len(tools))
	for i, t := range tools {
		out[i] = listed{&t.Definition, t.Fingerprint()}
	}
	return out
}

func printTools(a *app, tools []*registry.Tool, hidden []registry.Hidden, all bool) error {
	t := table{header: []string{"NAME", "SOURCE", "CATEGORY", "DESCRIPTION"}}
	for _, tool := range tools {
		description := tool.Description
		if a.outTTY { // there is room for one line
			description, _, _ = strings.Cut(description, "\n")
		}
		t.add(tool.Name, tool.Source, string(tool.Category), description)
	}
	if all {
		for _, h := range hidden {
			reason := "hidden: " + h.Reason
			if h.Setting != "" {
				reason += " (" + h.Setting + ")"
			}
			t.add(h.Name, h.Source, "-", reason)
		}
	}
	return t.print(a)
}

func runListOne(ctx context.Context, a *app, o *listOptions, name string) error {
	reg, tool, err := a.find(ctx, name)
	if err != nil {
		return err
	}
	tools := []*registry.Tool{tool}
	if o.versions {
		tools = reg.Versions(tool.Name)
	}
	if a.globals.JSON {
		return a.printJSON(listDocument{Tools: listedTools(tools), Diagnostics: a.noticed(reg)})
	}
	if o.examples {
		return a.printExamples(reg, tools)
	}
	var b strings.Builder
	for i, t := range tools {
		if i > 0 {
			b.WriteString("\n")
		}
		writeTool(&b, t, definition(reg, t).Name)
	}
	_, err = io.WriteString(a.out, b.String())
	return err
}

// writeTool shows one tool in full.
func writeTool(b *strings.Builder, t *registry.Tool, callAs string) {
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, "%-14s%s\n", name+":", terminal.Line(value))
		}
	}
	field("name", t.Name)
	if t.DisplayName != t.Name {
		field("display name", t.DisplayName)
	}
	field("source", t.Source)
	field("server tool", t.ServerTool)
	field("declared in", t.Declared)
	field("category", string(t.Category))
	field("tags", strings.Join(t.Tags, ", "))
	field("version", t.Version)
	field("author", t.Author)
	field("icon", t.Icon)
	if t.Optional {
		field("optional", "yes")
	}
	field("aliases", strings.Join(t.Aliases, ", "))
	field("permissions", strings.Join(t.Permissions, ", "))
	field("annotations", string(t.Annotations))
	field("fingerprint", t.Fingerprint())
	if t.Description != "" {
		b.WriteString("description:\n" + block(t.Description))
	}
	writeSchema(b, "input schema", t.InputSchema)
	writeSchema(b, "output schema", t.OutputSchema)
	for _, e := range t.Examples {
		fmt.Fprintf(b, "%-14s%s\n  %s\n", "example:", terminal.Line(e.Description), exampleCommand(callAs, e))
	}
}

// printExamples prints each example as a command, under its description as a
// comment.
func (a *app) printExamples(reg *registry.Registry, tools []*registry.Tool) error {
	var b strings.Builder
	for _, t := range tools {
		for _, e := range t.Examples {
			if e.Description != "" {
				b.WriteString("# " + terminal.Line(e.Description) + "\n")
			}
			b.WriteString(exampleCommand(definition(reg, t).Name, e) + "\n")
		}
	}
	if b.Len() == 0 {
		a.note("toolreg: the tool has no examples\n")
	}
	_, err := io.WriteString(a.out, b.String())
	return err
}

// exampleCommand is the command line that makes the call of an example.
func exampleCommand(name string, e registry.Example) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(plainWord, r) }) {
		name = shellQuote(terminal.Line(name))
	}
	params := []byte("{}")
	var compact bytes.Buffer
	if json.Compact(&compact, e.Params) == nil {
		params = terminal.EscapeJSON(compact.Bytes())
	}
	return "toolreg call " + name + " --params " + shellQuote(string(params))
}

// plainWord holds the characters of names that no shell changes.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-@"

func writeSchema(b *strings.Builder, title string, schema json.RawMessage) {
	if len(schema) == 0 {
		return
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, schema, "", "  ") != nil {
		pretty.Reset()
		pretty.Write(schema)
	}
	b.WriteString(title + ":\n" + block(pretty.String()))
}

// block indents a text of several lines.
func block(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(terminal.Visible(s), "\n"), "\n", "\n  ") + "\n"
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return slices.Clip(s)
}
