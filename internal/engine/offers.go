package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/confine"
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/provider/deferred"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/toolsearch"
)

// Offers decides what is offered to models: which tools, under which names, and which of
// them are declared at once and which are found by a search.
type Offers struct {
	finder   *finder
	policies *policies
	programs *programs.Set
}

// Split splits tools into those to declare and those whose every call is denied. The
// latter are hidden, but a call of one is still answered with the denial. It returns an
// *settings.InputError if the rules are invalid.
func (o *Offers) Split(ctx context.Context, reg *registry.Registry,
	tools []*registry.Tool) ([]*registry.Tool, []registry.Hidden, error) {
	p, err := o.policies.policy(reg)
	if err != nil {
		return nil, nil, err
	}
	var hidden []registry.Hidden
	offered := slices.DeleteFunc(slices.Clone(tools), func(t *registry.Tool) bool {
		v, denied := p.DeniesAll(ctx, t)
		if denied {
			hidden = append(hidden,
				registry.Hidden{
					Name:    t.Name,
					Version: t.Version,
					Source:  t.Source,
					Reason:  "every call is denied: " + v.Reason,
					Setting: v.Origin,
				})
		}
		return denied
	})
	return offered, hidden, nil
}

// inScope returns the tools of a registry that are offered to models and in the scope of ctx;
// see [WithScope].
func (o *Offers) inScope(ctx context.Context, reg *registry.Registry) ([]*registry.Tool, error) {
	tools, _, err := o.Split(ctx, reg, reg.Tools())
	return slices.DeleteFunc(tools, func(t *registry.Tool) bool { return !scopeOf(ctx).showsTool(t) }), err
}

// Declared maps the names of the whole registry to those in declarations of a
// format.
func (o *Offers) Declared(ctx context.Context, whole *registry.Registry, format string) map[string]string {
	f := o.finder.forCaller(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]string{}
	for declared, name := range f.declaredNames(whole, format) {
		out[name] = declared
	}
	return out
}

// Deferral returns the options for declaring a registry's tools, so that a model can find
// those that are not declared. It returns a *settings.InputError if the rules are invalid.
func (o *Offers) Deferral(ctx context.Context, whole *registry.Registry, all bool) (deferred.Options, error) {
	offered, _, err := o.Split(ctx, whole, whole.Tools())
	set := o.finder.set.Search
	return deferred.Options{
		All:      all,
		Budget:   set.Budget,
		Client:   set.Client,
		Overview: o.overview(offered),
		Always:   o.alwaysDeclared(),
	}, err
}

// alwaysDeclared returns a function that reports whether search.always names a tool.
func (o *Offers) alwaysDeclared() func(*registry.Definition) bool {
	always := o.finder.set.Search.Always.Sourced()
	for i := range always {
		always[i].Value = registry.NameIn(always[i].Value)
	}
	return func(d *registry.Definition) bool {
		_, named := registry.MatchAny(always, d.Spellings()...)
		return named
	}
}

func (o *Offers) overview(tools []*registry.Tool) deferred.Overview {
	out := deferred.Overview{Tools: len(tools)}
	at := map[string]int{}
	for _, t := range tools {
		i, ok := at[t.Source]
		if !ok {
			i = len(out.Sources)
			at[t.Source] = i
			out.Sources = append(out.Sources,
				deferred.Source{Name: t.Source, Description: o.serverDescription(t.Server)})
		}
		out.Sources[i].Tools++
	}
	return out
}

// serverDescription returns the description of a server in the settings; "" if
// there is none.
func (o *Offers) serverDescription(server string) string {
	if entry := o.finder.set.Entry(server); entry != nil {
		return entry.Description
	}
	return ""
}

// Ranked is a tool that a search found.
type Ranked struct {
	Tool  *registry.Tool
	Score float64
}

// Search returns the tools that match a query, the best first and at most limit of them,
// and the number of all matches. If search.command fails, the order stays unchanged and
// there is a warning.
func (o *Offers) Search(ctx context.Context, tools []*registry.Tool,
	query string, limit int) (found []Ranked, matched int, err error) {
	documents := make([]toolsearch.Document, len(tools))
	for i, t := range tools {
		documents[i] = toolsearch.Of(&t.Definition, o.serverDescription(t.Server))
	}
	wanted := limit
	if len(o.finder.set.Search.Command.Argv) > 0 {
		wanted = max(limit, toolsearch.Candidates)
	}
	hits, matched := toolsearch.New(documents).Rank(query, wanted)
	for _, h := range hits {
		found = append(found, Ranked{tools[h.Document], h.Score})
	}
	if len(o.finder.set.Search.Command.Argv) > 0 && len(found) > 0 {
		if found, err = o.reordered(ctx, found, query, limit); err != nil {
			return nil, 0, err
		}
	}
	return found[:min(limit, len(found))], matched, nil
}

// reordered runs search.command to reorder the results. Tools that it does not
// name come last. The error is the cause of ctx.
func (o *Offers) reordered(ctx context.Context, found []Ranked, query string, limit int) ([]Ranked, error) {
	candidates := make([]toolsearch.Candidate, len(found))
	for i, f := range found {
		candidates[i] = toolsearch.Candidate{
			Name: f.Tool.Name, Description: f.Tool.Description, Server: f.Tool.Server,
			InputSchema: f.Tool.InputSchema, Score: f.Score,
		}
	}
	set := o.finder.set.Search
	argv, err := o.programs.Expander.Command(set.Command)
	var order []int
	var unknown []string
	if err == nil {
		order, unknown, err = toolsearch.Command{
			Argv: argv, Dir: o.finder.set.ProjectRoot, Env: o.programs.EnvFor(set.Command), Timeout: set.Timeout,
			Confine: o.programs.Confiner.ProgramsOf(confine.Processor, set.Command.Origin.Scope),
		}.Order(ctx, query, limit, candidates)
	}
	switch {
	case context.Cause(ctx) != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		o.finder.reports.notice(registry.Warning("search_command_failed", "",
			fmt.Sprintf("search.command failed: %v; tools are listed by score", err),
			"set at "+set.Command.Origin.String()))
		return found, nil
	case len(unknown) > 0:
		o.finder.reports.notice(registry.Warning("search_command_unknown_tool", "",
			"search.command named unknown tools, which are ignored: "+text.Quote(strings.Join(unknown, ", ")), ""))
	}
	out := make([]Ranked, 0, len(found))
	for _, i := range order {
		out = append(out, found[i])
	}
	for i, f := range found {
		if !slices.Contains(order, i) {
			out = append(out, f)
		}
	}
	return out, nil
}

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

// searchParams are the params of search_tools, and of a search that a provider leaves to its
// client.
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

// reaching returns the search tool with this name (search_tools, describe_tools or call_tool), if
// the registry has no tool of that name. ok is false for all other names.
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
