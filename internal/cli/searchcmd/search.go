// Package searchcmd implements the command search, which finds tools by what
// they do.
package searchcmd

import (
	"cmp"
	"context"
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

// DefaultLimit is how many tools are found unless the user says otherwise.
const DefaultLimit = 10

// Query is what to search for.
type Query struct {
	cli.Selection
	Words string // describe what the tool should do
	Limit int    // at most this many tools
}

type options struct {
	Query
	preset  string
	format  string // "" means a table, or JSON
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
			o.Words = strings.Join(argv, " ")
			return run(cmd.Context(), e, o)
		},
	}
	o.Flags(e, cmd, "strict")
	cli.PresetFlag(cmd, &o.preset)
	cmd.Flags().IntVarP(&o.Limit, "limit", "n", DefaultLimit, "print at most `N` tools")
	cmd.Flags().StringVarP(&o.format, "format", "f", "",
		"print the declarations of the tools in this `format`, as schema does")
	complete.Flag(cmd, "format", complete.Formats)
	cmd.Flags().BoolVar(&o.request, "request", false, "with --format: wrap them as the API's tools field requires")
	return cmd
}

// Document is the JSON of search.
type Document struct {
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

func (q *Query) check() error {
	switch {
	case strings.TrimSpace(q.Words) == "":
		return cli.Usage("the query is empty", "describe what the tool should do: toolreg search read a file")
	case q.Limit < 1:
		return &cli.UsageError{Err: fmt.Errorf("--limit %d: must be 1 or more", q.Limit)}
	}
	return nil
}

type found struct {
	reg      *registry.Registry
	tools    []engine.Ranked // best match first
	matched  int             // number of tools that match
	searched int             // number of tools that were searched
	noticed  []registry.Diagnostic
}

func (q *Query) findTools(ctx context.Context, s *engine.Session) (f found, err error) {
	if f.reg, err = q.Load(ctx, s); err != nil {
		return f, err
	}
	tools, _, err := s.Offers.Split(ctx, f.reg, q.Apply(f.reg.Tools()))
	if err != nil {
		return f, err
	}
	f.searched = len(tools)
	f.tools, f.matched, err = s.Offers.Search(ctx, tools, q.Words, q.Limit)
	f.noticed = s.Tools.Diagnostics(f.reg)
	return f, err
}

// Document searches the tools of a session.
func (q *Query) Document(ctx context.Context, s *engine.Session) (Document, error) {
	if err := q.check(); err != nil {
		return Document{}, err
	}
	f, err := q.findTools(ctx, s)
	return q.document(f), err
}

func (q *Query) document(f found) Document {
	doc := Document{
		Query:       q.Words,
		Tools:       []scored{},
		Matched:     f.matched,
		Registered:  f.searched,
		Diagnostics: cli.OrEmpty(f.noticed),
	}
	for _, t := range f.tools {
		doc.Tools = append(doc.Tools, scored{&t.Tool.Definition, t.Tool.Fingerprint(), t.Score})
	}
	return doc
}

func run(ctx context.Context, e *cli.Env, o *options) error {
	if err := o.check(); err != nil {
		return err
	}
	var format provider.Format
	switch {
	case o.format == "" && o.request:
		return cli.Usage("--request needs --format", "toolreg search QUERY --format openai --request")
	case o.format != "":
		var err error
		if format, err = provider.Lookup(o.format); err != nil {
			return err
		}
	}
	inDocs := o.format == "" && e.IO.HoldsDiagnostics()
	s, err := e.Engine.Session(ctx,
		cli.SessionOptions{Options: engine.Options{Preset: o.preset, List: true}, InDocs: inDocs})
	if err != nil {
		return err
	}
	f, err := o.findTools(ctx, s)
	if err != nil {
		return err
	}
	if !inDocs {
		e.IO.Diagnose(f.noticed)
	}
	switch {
	case o.format != "":
		err = printDeclarations(e.IO, o, format, f.reg, f.tools)
	case e.IO.JSON:
		err = e.IO.PrintJSON(o.document(f))
	default:
		err = printTable(e.IO, f.tools, f.matched, f.searched)
	}
	return cmp.Or(err, o.StrictFailure(f.reg))
}

func printTable(ios *cli.IO, found []engine.Ranked, matched, searched int) error {
	if len(found) == 0 && ios.OutTTY {
		ios.Notef("no matching tools; %d searched", searched)
		return nil
	}
	ios.Summary("%d of %s; %d searched", len(found), text.Count(matched, "matching tool"), searched)
	t := ui.Table{Header: []string{"NAME", "SOURCE", "DESCRIPTION"}, Spare: []string{"SOURCE"}}
	for _, f := range found {
		t.Add(f.Tool.Name, f.Tool.Source, text.FirstSentence(f.Tool.Description))
	}
	return ios.PrintTable(&t)
}

func printDeclarations(ios *cli.IO, o *options, format provider.Format,
	reg *registry.Registry, found []engine.Ranked) error {
	tools := make([]*registry.Tool, len(found))
	for i, f := range found {
		tools[i] = f.Tool
	}
	out, diags := format.Encode(engine.Definitions(reg, tools),
		provider.Options{Request: o.request, Registered: engine.Names(reg)})
	ios.Diagnose(diags)
	return schemacmd.Print(ios, format, out)
}
