package listcmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/provider/deferred"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/imports"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

type costOptions struct {
	wanted   bool
	format   string
	deferral cli.Deferral

	formatGiven bool
}

const costHelp = `With --cost each line shows what a tool's declaration costs in every request:
bytes and estimated tokens, most expensive first; then each source, the total in
each format, and the total. Tokens are estimated from the number of characters,
with ratios measured with a tokenizer of each provider. With --preset, --source or
another filter all tools are included, and the last lines show what the filter
saves. With --inactive the last line shows what the unused tools cost in every
request. With --defer the last line shows what schema --defer leaves of the total:
what the model sees before it searches for tools.
`

func (o *costOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.wanted, "cost", false,
		"show what each declaration costs and what a filter saves, in bytes and estimated tokens")
	f.StringVarP(&o.format, "format", "f", provider.DefaultFormat,
		"with --cost and --html: the `format` of the declarations")
	complete.Flag(cmd, "format", complete.Formats)
	o.deferral.Flag(cmd, "with --cost: which tools the model must search for")
}

// cost is what declarations cost in every request. Name is the name of a tool, a source
// or a format, or describes a sum.
type cost struct {
	Name   string `json:"name"`
	Source string `json:"source,omitempty"` // of one tool
	Tools  int    `json:"tools,omitempty"`  // of a sum: number of declared tools
	Bytes  int    `json:"bytes"`
	Tokens int    `json:"tokens"` // estimated
}

// costDocument is the JSON of list --cost.
type costDocument struct {
	Format      string                `json:"format"`
	Tools       []*cost               `json:"tools"`   // most expensive first
	Sources     []*cost               `json:"sources"` // most expensive first
	Formats     []cost                `json:"formats"`
	Total       cost                  `json:"total"`
	Whole       *cost                 `json:"whole,omitempty"`  // without the filter
	Saved       *cost                 `json:"saved,omitempty"`  // saved by the filter
	Unused      *cost                 `json:"unused,omitempty"` // with --inactive: what the unused tools cost
	Percent     int                   `json:"savedPercent,omitempty"`
	Deferred    *cost                 `json:"deferred,omitempty"` // with --defer: what a request costs
	Diagnostics []registry.Diagnostic `json:"diagnostics"`
}

// runCost sums up the cost of the selected tools, or of a named one, and of all
// tools, to show what the filter saves.
func runCost(ctx context.Context, e *cli.Env, o *options, name string) error {
	if _, err := provider.Lookup(o.costs.format); err != nil {
		return err
	}
	if err := engine.CheckPreset(o.preset); err != nil {
		return err
	}
	inDocs := e.IO.HoldsDiagnostics()
	// The session has all tools, which show what the filter saves.
	s, err := e.Engine.Session(ctx, cli.SessionOptions{InDocs: inDocs})
	if err != nil {
		return err
	}
	if err := o.CheckSource(s); err != nil {
		return err
	}
	reg, err := s.Tools.All(ctx)
	if err != nil {
		return err
	}
	format, formats, err := o.costs.formats(s.Settings.View)
	if err != nil {
		return err
	}
	tools, all, err := o.counted(ctx, e, s, reg, name)
	if err != nil {
		return err
	}
	names := engine.Names(reg)
	doc, diags := costsOf(format, formats, reg, tools, names)
	if len(tools) < len(all) {
		doc.compare(sumOf("without the filter", format, engine.Definitions(reg, all), names))
	}
	if o.inactive > 0 {
		doc.Unused = &doc.Total
	}
	if o.costs.deferral.On() {
		opts, err := s.Offers.Deferral(ctx, reg, o.costs.deferral.All())
		if err != nil {
			return err
		}
		doc.Deferred = deferredCost(format, engine.Definitions(reg, registryOrder(reg, tools)), names, opts)
	}
	noticed := s.Tools.Diagnostics(reg)
	doc.Diagnostics = cli.OrEmpty(slices.Concat(noticed, diags))
	if !inDocs {
		e.IO.Diagnose(noticed)
		e.IO.Diagnose(diags)
	}
	if err := e.IO.PrintResult(doc, doc.table(), ""); err != nil {
		return err
	}
	return o.StrictFailure(reg)
}

// formats returns the format of the declarations, and the formats whose sums are shown. For an
// imported program with models of one provider, that is only that provider's.
func (o *costOptions) formats(view *imports.Program) (provider.Format, []provider.Format, error) {
	if view == nil || view.Format == "" {
		f, err := provider.Lookup(o.format)
		return f, provider.Formats(), err
	}
	name := view.Format
	if o.formatGiven {
		name = o.format
	}
	f, err := provider.Lookup(name)
	return f, []provider.Format{f}, err
}

// counted returns the tools to count and all tools that are offered. name is the name of
// a tool or a glob; "" means the selection.
func (o *options) counted(ctx context.Context, e *cli.Env, s *engine.Session,
	reg *registry.Registry, name string) (tools, all []*registry.Tool, err error) {
	if err := o.CheckCategory(reg); err != nil {
		return nil, nil, err
	}
	all, _, err = s.Offers.Split(ctx, reg, reg.Sorted())
	if err != nil {
		return nil, nil, err
	}
	tools = slices.DeleteFunc(o.Apply(slices.Clone(all)),
		func(t *registry.Tool) bool { return !engine.InPreset(o.preset, t) })
	own, err := o.script(ctx, s, reg, name)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case own != nil && name != "":
		return []*registry.Tool{own}, append(all, own), nil
	case own != nil:
		tools, all = append(tools, own), append(all, own)
	case name != "":
		named, err := s.Tools.Matching(reg, name)
		if err != nil {
			e.IO.DiagnoseExcept(s.Tools.Diagnostics(reg), err)
			return nil, nil, err
		}
		tools = slices.DeleteFunc(tools, func(t *registry.Tool) bool { return !slices.Contains(named, t) })
	}
	tools, err = unusedTools(ctx, e.Config, tools, o.inactive)
	return tools, all, err
}

// script returns the tool run_script in its declared form; nil if it is not declared or not wanted.
func (o *options) script(ctx context.Context, s *engine.Session,
	reg *registry.Registry, name string) (*registry.Tool, error) {
	if name != "" {
		if named, err := s.Scripts.Has(ctx, name); err != nil || !named {
			return nil, err
		}
		if _, err := s.Tools.Find(ctx, name, engine.Query{Script: true}); err != nil {
			return nil, err
		}
	}
	if !s.Settings.Script.Declared() {
		return nil, nil
	}
	own, ok, err := s.Scripts.Declare(ctx, reg, o.costs.format, o.Matches)
	if err != nil || !ok {
		return nil, err
	}
	return own.Tool, nil
}

// costsOf declares the tools under their names in the whole registry and
// measures the declarations.
func costsOf(format provider.Format, formats []provider.Format, reg *registry.Registry,
	tools []*registry.Tool, names []string) (*costDocument, []registry.Diagnostic) {
	defs := engine.Definitions(reg, tools)
	source := make(map[string]string, len(defs))
	for i := range defs {
		source[defs[i].Name] = defs[i].Source
	}
	out, diags := format.Encode(defs, provider.Options{Registered: names})
	doc := &costDocument{Format: format.Name, Tools: []*cost{}, Sources: []*cost{}}
	of := map[string]*cost{}
	for _, d := range out.Declarations {
		c := &cost{Name: d.Tool, Source: source[d.Tool], Bytes: len(d.Data), Tokens: format.Tokens(d.Data)}
		doc.Tools = append(doc.Tools, c)
		s := of[c.Source]
		if s == nil {
			s = &cost{Name: c.Source}
			of[c.Source] = s
			doc.Sources = append(doc.Sources, s)
		}
		s.Tools, s.Bytes, s.Tokens = s.Tools+1, s.Bytes+c.Bytes, s.Tokens+c.Tokens
	}
	dearest := func(x, y *cost) int { return cmp.Compare(y.Bytes, x.Bytes) }
	slices.SortStableFunc(doc.Tools, dearest)
	slices.SortStableFunc(doc.Sources, dearest)
	for _, f := range formats {
		doc.Formats = append(doc.Formats, sumOf(f.Name, f, defs, names))
	}
	doc.Total = measured("total", format, out)
	return doc, diags
}

func sumOf(name string, f provider.Format, defs []registry.Definition, names []string) cost {
	out, _ := f.Encode(defs, provider.Options{Registered: names})
	return measured(name, f, out)
}

func measured(name string, f provider.Format, out provider.Output) cost {
	return cost{Name: name, Tools: len(out.Declarations), Bytes: len(out.Data), Tokens: f.Tokens(out.Data)}
}

// registryOrder returns tools in registry order, in which they are declared.
func registryOrder(reg *registry.Registry, tools []*registry.Tool) []*registry.Tool {
	wanted := make(map[*registry.Tool]bool, len(tools))
	for _, t := range tools {
		wanted[t] = true
	}
	return slices.DeleteFunc(reg.Tools(), func(t *registry.Tool) bool { return !wanted[t] })
}

// deferredCost returns the cost of what a model sees of the tools before it searches.
func deferredCost(f provider.Format, defs []registry.Definition, names []string, o deferred.Options) *cost {
	r := deferred.Declare(f, defs, provider.Options{Registered: names}, o)
	size := len(r.Data)
	for _, d := range r.Declarations {
		if d.Deferred {
			size -= len(d.Data)
		}
	}
	return &cost{Name: "with --defer", Tools: len(defs) - r.Deferred, Bytes: size, Tokens: r.Tokens}
}

// compare sets the sum of all tools and what the filter saves.
func (doc *costDocument) compare(whole cost) {
	doc.Whole = &whole
	doc.Saved = &cost{Name: "saved", Tools: whole.Tools - doc.Total.Tools,
		Bytes: whole.Bytes - doc.Total.Bytes, Tokens: whole.Tokens - doc.Total.Tokens}
	doc.Percent = 100 * doc.Saved.Bytes / max(whole.Bytes, 1)
}

func (doc *costDocument) table() *ui.Table {
	t := &ui.Table{Header: []string{"NAME", "BYTES", "TOKENS", "SOURCE"}}
	row := func(prefix string, c cost, note string) {
		t.Add(prefix+c.Name, strconv.Itoa(c.Bytes), strconv.Itoa(c.Tokens), note)
	}
	for _, c := range doc.Tools {
		row("", *c, c.Source)
	}
	for _, c := range doc.Sources {
		row("from ", *c, text.Count(c.Tools, "tool"))
	}
	for _, c := range doc.Formats {
		row("as ", c, text.Count(c.Tools, "tool"))
	}
	row("", doc.Total, text.Count(doc.Total.Tools, "tool")+" as "+doc.Format)
	if doc.Whole != nil {
		row("", *doc.Whole, text.Count(doc.Whole.Tools, "tool"))
	}
	switch {
	case doc.Unused != nil:
		whole := cmp.Or(doc.Whole, &doc.Total)
		row("", cost{Name: "unused", Bytes: doc.Unused.Bytes, Tokens: doc.Unused.Tokens},
			fmt.Sprintf("%s, %d%% of the bytes of every request",
				text.Count(doc.Unused.Tools, "tool"), 100*doc.Unused.Bytes/max(whole.Bytes, 1)))
	case doc.Saved != nil:
		row("", *doc.Saved, fmt.Sprintf("%s, %d%% of the bytes", text.Count(doc.Saved.Tools, "tool"), doc.Percent))
	}
	if d := doc.Deferred; d != nil {
		row("", *d, fmt.Sprintf("%s as %s, %d deferred",
			text.Count(d.Tools, "tool"), doc.Format, doc.Total.Tools-d.Tools))
	}
	return t
}
