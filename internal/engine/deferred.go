package engine

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/deferred"
	"github.com/toolreg/toolreg/internal/registry"
)

// Found is a tool with the registry in which it was found, which may have only
// some of the tools.
type Found struct {
	Registry *registry.Registry
	Tool     *registry.Tool
	reach    *reach // nil if Tool belongs to Registry; otherwise Tool gives access to its tools
}

// reaching returns the one of the three tools with this name, if the registry has no tool
// of that name. ok is false for all other names.
func (o *Offers) reaching(ctx context.Context, whole *registry.Registry, name, format string) (found Found, ok bool, err error) {
	kind := deferred.Kind(name)
	if kind == "" {
		return Found{}, false, nil
	}
	r := &reach{offers: o, kind: kind, format: format, registry: whole, names: map[string]string{}}
	if r.offered, err = o.inScope(ctx, whole); err != nil {
		return Found{}, false, err
	}
	if format != "" {
		r.declared = o.Declared(ctx, whole, format)
	}
	t := &registry.Tool{Run: r.answer}
	for _, d := range o.overview(r.offered).Definitions(deferred.Taken(format, Names(whole))) {
		r.names[deferred.Kind(d.Name)] = d.Name
		if deferred.Kind(d.Name) == kind {
			t.Definition = d
		}
	}
	if kind == deferred.SearchTools {
		t.Check = r.checkQuery
	}
	return Found{Registry: whole, Tool: t, reach: r}, true, nil
}

// FoundIn returns tools of a registry as if they had been looked up in it.
func FoundIn(reg *registry.Registry, tools []*registry.Tool) []Found {
	out := make([]Found, len(tools))
	for i, t := range tools {
		out[i] = Found{Registry: reg, Tool: t}
	}
	return out
}

// Reaching returns the three tools through which a model reaches the tools of
// the whole registry, preceded by those that must be declared with them
// according to the settings (search.always, deferLoading: false) or always.
func (o *Offers) Reaching(ctx context.Context, whole *registry.Registry, always func(*registry.Definition) bool) ([]Found, error) {
	offered, err := o.inScope(ctx, whole)
	if err != nil {
		return nil, err
	}
	set := o.alwaysDeclared()
	kept := slices.DeleteFunc(offered, func(t *registry.Tool) bool {
		said := t.Provider.DeferLoading
		return (said == nil || *said) && !set(&t.Definition) && !always(&t.Definition)
	})
	out := FoundIn(whole, kept)
	for _, name := range []string{deferred.SearchTools, deferred.DescribeTools, deferred.CallTool} {
		f, _, err := o.reaching(ctx, whole, name, "mcp")
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// Inner returns the name of the tool that call_tool calls with these params. It returns
// "" if f is another tool or the params are invalid.
func (f Found) Inner(raw json.RawMessage) string {
	if f.reach == nil || f.reach.kind != deferred.CallTool || !jsonx.Valid(raw) {
		return ""
	}
	name, _ := jsonx.Text(jsonx.Get(raw, "name"))
	return name
}
