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

func (r *reach) answer(ctx context.Context, call registry.Call) (registry.Result, error) {
	var a deferred.Answer
	var err error
	if r, err = r.forClient(ctx); err != nil {
		return registry.Result{}, err
	}
	switch r.kind {
	case deferred.SearchTools:
		a, err = r.search(ctx, call.Params)
	case deferred.DescribeTools:
		a, err = r.describe(call.Params)
	default:
		err = errors.New("the tool to call was not resolved")
	}
	if err != nil {
		return registry.Result{}, err
	}
	a.Unavailable = slices.DeleteFunc(r.registry.Failed(),
		func(source string) bool { return !scopeOf(ctx).showsSource(source) })
	text, err := a.Text()
	return registry.Result{Content: []registry.Content{registry.TextContent(text)}}, err
}

// forClient returns what the client of ctx reaches.
func (r *reach) forClient(ctx context.Context) (*reach, error) {
	if !caller.Known(ctx) {
		return r, nil
	}
	own := *r
	var err error
	own.offered, _, err = r.offers.Split(ctx, r.registry, r.offered)
	return &own, err
}

// checkQuery rejects a blank query, which the schema accepts.
func (r *reach) checkQuery(_ context.Context, call registry.Call) error {
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

func (r *reach) search(ctx context.Context, raw json.RawMessage) (deferred.Answer, error) {
	p, err := readSearch(raw)
	if err != nil {
		return deferred.Answer{}, err
	}
	found, matched, err := r.offers.Search(ctx, r.offered, p.Query, int(p.Limit))
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
func (r *reach) describe(raw json.RawMessage) (deferred.Answer, error) {
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
		if other, err := r.registry.Lookup(name); t == nil && err == nil && slices.Contains(r.offered, other) {
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

// nameOf returns the name by which the model knows a tool.
func (r *reach) nameOf(t *registry.Tool) string {
	if name := r.declared[t.Name]; name != "" {
		return name
	}
	return t.Name
}

// declarations declares the tools that a search finds.
func (r *reach) declarations(ctx context.Context, format provider.Format,
	raw json.RawMessage) ([]json.RawMessage, error) {
	p, err := readSearch(raw)
	if err != nil {
		return nil, err
	}
	always := r.offers.alwaysDeclared()
	hidden := slices.DeleteFunc(slices.Clone(r.offered), func(t *registry.Tool) bool {
		said := t.Provider.DeferLoading
		return said != nil && !*said || always(&t.Definition)
	})
	found, _, err := r.offers.Search(ctx, hidden, p.Query, int(p.Limit))
	tools := make([]*registry.Tool, len(found))
	for i := range found {
		tools[i] = found[i].Tool
	}
	return r.offers.overview(r.offered).Found(format, Definitions(r.registry, tools), Names(r.registry)), err
}

// reach is one of the three tools through which a model reaches tools that are
// not declared, for one registry.
type reach struct {
	offers   *Offers
	kind     string // such as deferred.SearchTools
	format   string // format of the names that the model knows; "" stands for those of the registry
	registry *registry.Registry
	offered  []*registry.Tool
	names    map[string]string // names of the three tools, by kind
	declared map[string]string // declared names, by name; nil if they are the same
}

// reachOf returns what a found tool is, if it is one of the three; otherwise nil.
func reachOf(f Found) *reach {
	r, _ := f.reach.(*reach)
	return r
}

// called reads the params of call_tool.
func (r *reach) called(ctx context.Context, t *registry.Tool,
	raw json.RawMessage) (name string, params json.RawMessage, err error) {
	all, err := registry.DecodeParams(t.Name, raw)
	if err != nil {
		return "", nil, err
	}
	if given := jsonx.Get(all, "params"); jsonx.KindOf(given) == jsonx.String {
		return "", nil, registry.Invalid(t.Name, "/params",
			`must be an object, such as {"path":"a.txt"}, not a string that contains JSON`)
	}
	if err := r.registry.Validate(ctx, t, all); err != nil {
		return "", nil, err
	}
	name, _ = jsonx.Text(jsonx.Get(all, "name"))
	return name, jsonx.Get(all, "params"), nil
}

// reaching returns the one of the three tools with this name, if the registry has no tool
// of that name. ok is false for all other names.
func (o *Offers) reaching(ctx context.Context, whole *registry.Registry,
	name, format string) (found Found, ok bool, err error) {
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
	t := &registry.Tool{Behavior: registry.Behavior{Run: r.answer}}
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
	if r := reachOf(f); r == nil || r.kind != deferred.CallTool || !jsonx.Valid(raw) {
		return ""
	}
	name, _ := jsonx.Text(jsonx.Get(raw, "name"))
	return name
}
