package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/provider/deferred"
	"github.com/toolreg/toolreg/internal/registry"
)

// answer makes a call of one of the three tools.
func (o *Offers) answer(ctx context.Context, f Found, call registry.Call) (registry.Result, error) {
	r := *f.reach
	var a deferred.Answer
	var err error
	if caller.Known(ctx) { // a client reaches what it is offered
		if r.offered, _, err = o.Split(ctx, f.Registry, r.offered); err != nil {
			return registry.Result{}, err
		}
	}
	switch r.kind {
	case deferred.SearchTools:
		a, err = o.answerSearch(ctx, &r, call.Params)
	case deferred.DescribeTools:
		a, err = r.describe(f.Registry, call.Params)
	default:
		err = errors.New("the tool to call was not resolved")
	}
	if err != nil {
		return registry.Result{}, err
	}
	a.Unavailable = slices.DeleteFunc(f.Registry.Failed(),
		func(source string) bool { return !scopeOf(ctx).showsSource(source) })
	text, err := a.Text()
	return registry.Result{Content: []registry.Content{registry.TextContent(text)}}, err
}

// checkQuery rejects a blank query, which the schema accepts.
func checkQuery(_ context.Context, call registry.Call) error {
	query, _ := jsonx.Text(jsonx.Get(call.Params, "query"))
	if strings.TrimSpace(query) == "" {
		return registry.Invalid(call.Tool, "/query", "is blank; describe in a few words what the tool should do")
	}
	return nil
}

// searchParams are the params of search_tools, and of a search that a provider
// leaves to its client.
type searchParams struct {
	Query string  `json:"query"`
	Limit float64 `json:"limit"` // an integer, perhaps written as 5.0
}

func readSearch(raw json.RawMessage) (searchParams, error) {
	p := searchParams{Limit: deferred.DefaultFound}
	return p, json.Unmarshal(raw, &p)
}

func (o *Offers) answerSearch(ctx context.Context, r *reach, raw json.RawMessage) (deferred.Answer, error) {
	p, err := readSearch(raw)
	if err != nil {
		return deferred.Answer{}, err
	}
	found, matched, err := o.Search(ctx, r.offered, p.Query, int(p.Limit))
	if err != nil {
		return deferred.Answer{}, err
	}
	a := deferred.Answer{Matched: &matched, Searched: len(r.offered)}
	for _, f := range found {
		a.Tools = append(a.Tools, deferred.Describe(r.nameOf(f.Tool), &f.Tool.Definition))
	}
	if len(found) == 0 {
		a.Notes = []string{"No tool matches. Try other words, or the name of a server."}
		return a, nil
	}
	a.Notes = []string{"Call these with " + r.names[deferred.CallTool] + ", unless they are declared to you."}
	a.Shorten(r.names[deferred.DescribeTools])
	return a, nil
}

// describe describes tools by the names that the model knows, or by any other name that
// they have.
func (r *reach) describe(reg *registry.Registry, raw json.RawMessage) (deferred.Answer, error) {
	var p struct{ Names []string }
	if err := json.Unmarshal(raw, &p); err != nil {
		return deferred.Answer{}, err
	}
	tools := make(map[string]*registry.Tool, len(r.offered))
	names := make([]string, len(r.offered))
	for i, t := range r.offered {
		names[i] = r.nameOf(t)
		tools[names[i]] = t
	}
	var a deferred.Answer
	for i, name := range p.Names {
		if slices.Contains(p.Names[:i], name) {
			continue
		}
		t := tools[name]
		if other, err := reg.Lookup(name); t == nil && err == nil && slices.Contains(r.offered, other) {
			t = other
		}
		if t != nil {
			a.Tools = append(a.Tools, deferred.Describe(name, &t.Definition))
		} else {
			a.Tools = append(a.Tools, deferred.Missing(name, registry.Near(name, names)))
		}
	}
	return a, nil
}

// declarations declares the tools that a search finds.
func (o *Offers) declarations(ctx context.Context, f Found, format provider.Format,
	raw json.RawMessage) ([]json.RawMessage, error) {
	p, err := readSearch(raw)
	if err != nil {
		return nil, err
	}
	always := o.alwaysDeclared()
	hidden := slices.DeleteFunc(slices.Clone(f.reach.offered), func(t *registry.Tool) bool {
		said := t.Provider.DeferLoading
		return said != nil && !*said || always(&t.Definition)
	})
	found, _, err := o.Search(ctx, hidden, p.Query, int(p.Limit))
	tools := make([]*registry.Tool, len(found))
	for i := range found {
		tools[i] = found[i].Tool
	}
	return o.overview(f.reach.offered).Found(format, Definitions(f.Registry, tools), Names(f.Registry)), err
}

func (f Found) isCallTool() bool { return f.reach != nil && f.reach.kind == deferred.CallTool }

func (f Found) called(ctx context.Context, raw json.RawMessage) (name string, params json.RawMessage, err error) {
	all, err := registry.DecodeParams(f.Tool.Name, raw)
	if err != nil {
		return "", nil, err
	}
	all = Restored(f.Tool, all)
	if err := f.Registry.Validate(ctx, f.Tool, all); err != nil {
		return "", nil, err
	}
	name, _ = jsonx.Text(jsonx.Get(all, "name"))
	return name, jsonx.Get(all, "params"), nil
}

// reaching returns the one of the three tools with this name, if the registry has no tool
// of that name. ok is false for all other names.
func (o *Offers) reaching(ctx context.Context, whole *registry.Registry,
	name, format string) (f Found, ok bool, err error) {
	kind := deferred.Kind(name)
	if kind == "" {
		return Found{}, false, nil
	}
	t, r := &registry.Tool{}, &reach{kind: kind, format: format, names: map[string]string{}}
	if r.offered, err = o.inScope(ctx, whole); err != nil {
		return Found{}, false, err
	}
	if format != "" {
		r.declared = o.Declared(ctx, whole, format)
	}
	for _, d := range o.overview(r.offered).Definitions(deferred.Taken(format, Names(whole))) {
		r.names[deferred.Kind(d.Name)] = d.Name
		if deferred.Kind(d.Name) == kind {
			t.Definition = d
		}
	}
	if kind == deferred.SearchTools {
		t.Check = checkQuery
	}
	f = Found{Registry: whole, Tool: t, reach: r}
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) { return o.answer(ctx, f, call) }
	return f, true, nil
}

// Reaching returns the three tools through which a model reaches the tools of
// the whole registry, preceded by those that must be declared with them
// according to the settings (search.always, deferLoading: false) or always.
func (o *Offers) Reaching(ctx context.Context, whole *registry.Registry,
	always func(*registry.Definition) bool) ([]Found, error) {
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
	if !f.isCallTool() || !jsonx.Valid(raw) {
		return ""
	}
	name, _ := jsonx.Text(jsonx.Get(raw, "name"))
	return name
}
