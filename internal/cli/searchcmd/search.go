// Package searchcmd implements the command search, which finds tools by what
// they do.
package searchcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/cli/schemacmd"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// defaultLimit is how many tools are printed unless the user says otherwise.
const defaultLimit = 10

type options struct {
	cli.Selection
	preset  string
	limit   int
	format  string // "" = a table, or JSON
	request bool
}

// New returns the command search.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "search QUERY…",
		Short: "Find tools by what they do",
		Long: `Find tools by what they do, the best match first. The words of the query are matched
against the names, descriptions, params, tags and servers of tools. A rare word has
more weight than a common one, and a name more than a description. Related words
(add, create) and words with a typo match too.

With --cached no source is started; cached tool lists are used. The setting
search.command names a program that reorders the results, such as one that uses
an embedding model: it reads {"query", "limit", "tools"} on stdin and prints a JSON
list of names.

Exit codes: 0 (also if nothing is found), 2, 3 (no such server), 8 (with --strict:
a source failed).`,
		Example: `  toolreg search create a pull request
  toolreg search read pdf --json --limit 3
  toolreg search 'query a database' --format openai --request`,
		Args: cli.ArgsBetween(1, -1, "words that describe what the tool should do"),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return run(cmd.Context(), e, o, strings.Join(argv, " "))
		},
	}
	o.Flags(e, cmd, "strict")
	cli.PresetFlag(cmd, &o.preset)
	cmd.Flags().IntVarP(&o.limit, "limit", "n", defaultLimit, "print at most `N` tools")
	cmd.Flags().StringVarP(&o.format, "format", "f", "", "print the declarations of the tools in this `format`, as schema does")
	complete.Flag(cmd, "format", complete.Formats)
	cmd.Flags().BoolVar(&o.request, "request", false, "with --format: wrap them as the API's tools field requires")
	return cmd
}

// document is the JSON of search.
type document struct {
	Query       string                `json:"query"`
	Tools       []scored              `json:"tools"`      // best match first
	Matched     int                   `json:"matched"`    // number of tools that match
	Registered  int                   `json:"registered"` // number of tools that were searched
	Diagnostics []registry.Diagnostic `json:"diagnostics"`
}

type scored struct {
	*registry.Definition
	Fingerprint string  `json:"fingerprint"` // hash of the definition and of what provides it
	Score       float64 `json:"score"`
}

// check returns an error if the query or the options are invalid.
func (o *options) check(query string) (format provider.Format, err error) {
	switch {
	case strings.TrimSpace(query) == "":
		return format, &cli.UsageError{Err: errors.New("the query is empty"), Hint: "describe what the tool should do: toolreg search read a file"}
	case o.limit < 1:
		return format, &cli.UsageError{Err: fmt.Errorf("--limit %d: must be 1 or more", o.limit)}
	case o.format == "" && o.request:
		return format, &cli.UsageError{Err: errors.New("--request needs --format"), Hint: "toolreg search QUERY --format openai --request"}
	case o.format == "":
		return format, nil
	}
	return provider.Lookup(o.format)
}

func run(ctx context.Context, e *cli.Env, o *options, query string) error {
	format, err := o.check(query)
	if err != nil {
		return err
	}
	inDocs := o.format == "" && e.IO.HoldsDiagnostics()
	s, err := e.Engine.Session(ctx, cli.SessionOptions{Options: engine.Options{Preset: o.preset, List: true}, InDocs: inDocs})
	if err != nil {
		return err
	}
	reg, err := o.Load(ctx, s)
	if err != nil {
		return err
	}
	tools, _, err := s.Offered(ctx, reg, o.Apply(reg.Tools()))
	if err != nil {
		return err
	}
	found, matched, err := s.Search(ctx, tools, query, o.limit)
	if err != nil {
		return err
	}
	noticed := s.Diagnostics(reg)
	if !inDocs {
		e.IO.Diagnose(noticed)
	}
	switch {
	case o.format != "":
		err = printDeclarations(e.IO, o, format, reg, found)
	case e.IO.JSON:
		err = e.IO.PrintJSON(newDocument(query, found, matched, len(tools), noticed))
	default:
		err = printTable(e.IO, found, matched, len(tools))
	}
	return cmp.Or(err, o.StrictFailure(reg))
}

func newDocument(query string, found []engine.Ranked, matched, registered int, diags []registry.Diagnostic) document {
	doc := document{Query: query, Tools: []scored{}, Matched: matched, Registered: registered, Diagnostics: cli.OrEmpty(diags)}
	for _, f := range found {
		doc.Tools = append(doc.Tools, scored{&f.Tool.Definition, f.Tool.Fingerprint(), f.Score})
	}
	return doc
}

func printTable(ios *cli.IO, found []engine.Ranked, matched, searched int) error {
	if len(found) == 0 && ios.OutTTY {
		ios.Notef("no matching tools; %d searched", searched)
		return nil
	}
	ios.Summary("%d of %s; %d searched", len(found), cli.Counted(matched, "matching tool"), searched)
	t := ui.Table{Header: []string{"NAME", "SOURCE", "DESCRIPTION"}, Spare: []string{"SOURCE"}}
	for _, f := range found {
		t.Add(f.Tool.Name, f.Tool.Source, text.FirstSentence(f.Tool.Description))
	}
	return ios.PrintTable(&t)
}

func printDeclarations(ios *cli.IO, o *options, format provider.Format, reg *registry.Registry, found []engine.Ranked) error {
	tools := make([]*registry.Tool, len(found))
	for i, f := range found {
		tools[i] = f.Tool
	}
	out, diags := format.Encode(engine.Definitions(reg, tools), provider.Options{Request: o.request, Registered: engine.Names(reg)})
	ios.Diagnose(diags)
	return schemacmd.Print(ios, format, out)
}
