package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/terminal"
)

type listOptions struct {
	selection
	all      bool
	versions bool
}

func newListCommand(a *app) *cobra.Command {
	o := &listOptions{}
	cmd := &cobra.Command{
		Use:   "list [TOOL]",
		Short: "List the tools in the registry",
		Long: `List the tools in the registry, or show one tool in full.

In a pipe each tool is one line: name, source, category and description,
separated by tabs. Exit codes: 0, 2, 3 (no such tool), 8 (with --strict).`,
		Example: `  toolreg list
  toolreg list --source 'mcp:*' --json
  toolreg list read_file`,
		Args: argsBetween(0, 1, "at most one tool"),
		RunE: func(cmd *cobra.Command, argv []string) error {
			a.reports = a.globals.JSON && a.jq == nil
			if len(argv) == 1 {
				return runListOne(cmd.Context(), a, o, argv[0])
			}
			return runList(cmd.Context(), a, o)
		},
	}
	o.flags(cmd.Flags(), "strict")
	cmd.Flags().BoolVar(&o.all, "all", false, "show hidden tools too, and which setting hides them")
	cmd.Flags().BoolVar(&o.versions, "versions", false, "with TOOL: every version of it")
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
	tools := o.apply(reg.Sorted())
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
		t.add(tool.Name, tool.Source, string(tool.Category), tool.Description)
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
	var b strings.Builder
	for i, t := range tools {
		if i > 0 {
			b.WriteString("\n")
		}
		writeTool(&b, t)
	}
	_, err = io.WriteString(a.out, b.String())
	return err
}

// writeTool shows one tool in full.
func writeTool(b *strings.Builder, t *registry.Tool) {
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
	field("category", string(t.Category))
	field("tags", strings.Join(t.Tags, ", "))
	field("version", t.Version)
	field("author", t.Author)
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
		fmt.Fprintf(b, "example:      %s\n  toolreg call %s --params %s\n", terminal.Line(e.Description), t.Name, shellQuote(terminal.Line(string(e.Params))))
	}
}

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
