package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/confine"
	"github.com/toolreg/toolreg/internal/engine/programs"
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
// those that are not declared. It returns an *settings.InputError if the rules are invalid.
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

// overview counts tools by source.
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
