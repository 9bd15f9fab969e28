package main

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/declare"
	"github.com/toolreg/toolreg/internal/registry"
)

// costOptions are the options of list about what declarations cost.
type costOptions struct {
	wanted bool
	format string
}

func (o *costOptions) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.wanted, "cost", false, "what each declaration costs: bytes and estimated tokens, the dearest first")
	f.StringVarP(&o.format, "format", "f", declare.DefaultFormat, "with --cost: the `format` of the declarations")
}

// toolCost is the cost of one declaration, which every request pays.
type toolCost struct {
	Name   string `json:"name"`
	Source string `json:"source,omitempty"`
	Bytes  int    `json:"bytes"`
	Tokens int    `json:"tokens"` // estimated
}

type costDocument struct {
	Format      string                `json:"format"`
	Tools       []toolCost            `json:"tools"`
	Total       toolCost              `json:"total"`
	Diagnostics []registry.Diagnostic `json:"diagnostics"`
}

func (a *app) printCosts(o *costOptions, tools []*registry.Tool, reg *registry.Registry) error {
	format, err := declare.Lookup(o.format)
	if err != nil {
		return err
	}
	defs := make([]registry.Definition, len(tools))
	source := make(map[string]string, len(tools))
	for i, t := range tools {
		defs[i] = definition(reg, t)
		source[defs[i].Name] = t.Source
	}
	out, diags := format.Encode(defs, declare.Options{})
	doc := costDocument{Format: format.Name, Tools: []toolCost{}, Diagnostics: orEmpty(append(a.noticed(reg), diags...)),
		Total: toolCost{Name: "total", Bytes: len(out.Data), Tokens: declare.Tokens(out.Data)}}
	for _, d := range out.Declarations {
		doc.Tools = append(doc.Tools, toolCost{d.Tool, source[d.Tool], len(d.Data), declare.Tokens(d.Data)})
	}
	slices.SortStableFunc(doc.Tools, func(x, y toolCost) int { return cmp.Compare(y.Bytes, x.Bytes) })
	if a.globals.JSON {
		return a.printJSON(doc)
	}
	a.diagnose(diags)
	t := table{header: []string{"NAME", "BYTES", "TOKENS", "SOURCE"}}
	for _, c := range append(doc.Tools, doc.Total) {
		t.add(c.Name, strconv.Itoa(c.Bytes), strconv.Itoa(c.Tokens), c.Source)
	}
	return t.print(a)
}
