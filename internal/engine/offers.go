package engine

import (
	"context"
	"slices"

	"github.com/toolreg/toolreg/internal/provider/deferred"
	"github.com/toolreg/toolreg/internal/registry"
)

// Offers decides what is offered to models: which tools, under which names, and which of
// them are declared at once and which are found by a search.
type Offers struct {
	*run
	finder *finder
	gate   *gate

	scripts *Scripts
}

// Split splits tools into those to declare and those whose every call is denied. The
// latter are hidden, but a call of one is still answered with the denial. It returns an
// *InputError if the rules are invalid.
func (o *Offers) Split(ctx context.Context, reg *registry.Registry, tools []*registry.Tool) ([]*registry.Tool, []registry.Hidden, error) {
	p, err := o.policy(reg)
	if err != nil {
		return nil, nil, err
	}
	var hidden []registry.Hidden
	offered := slices.DeleteFunc(slices.Clone(tools), func(t *registry.Tool) bool {
		v, denied := p.DeniesAll(ctx, t)
		if denied {
			hidden = append(hidden, registry.Hidden{Name: t.Name, Version: t.Version, Source: t.Source, Reason: "every call is denied: " + v.Reason, Setting: v.Origin})
		}
		return denied
	})
	return offered, hidden, nil
}

// inScope returns the tools of a registry that are offered to models and in the scope of ctx;
// see [WithScope].
func (o *Offers) inScope(ctx context.Context, reg *registry.Registry) ([]*registry.Tool, error) {
	tools, _, err := o.Split(ctx, reg, reg.Tools())
	return slices.DeleteFunc(tools, func(t *registry.Tool) bool { return !allows(ctx, t) }), err
}

// Declared maps the names of the whole registry to those in declarations of a
// format.
func (o *Offers) Declared(ctx context.Context, whole *registry.Registry, format string) map[string]string {
	f := o.finder.of(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]string{}
	for declared, name := range f.declaredNames(whole, format) {
		out[name] = declared
	}
	return out
}

// Deferral returns the options for declaring a registry's tools, so that a model can find
// those that are not declared. It returns an *InputError if the rules are invalid.
func (o *Offers) Deferral(ctx context.Context, whole *registry.Registry, all bool) (deferred.Options, error) {
	offered, _, err := o.Split(ctx, whole, whole.Tools())
	set := o.set.Search
	return deferred.Options{All: all, Budget: set.Budget, Client: set.Client, Overview: o.overview(offered), Always: o.alwaysDeclared()}, err
}

// alwaysDeclared returns a function that reports whether search.always names a tool.
func (o *Offers) alwaysDeclared() func(*registry.Definition) bool {
	always := o.set.Search.Always.Sourced()
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
			out.Sources = append(out.Sources, deferred.Source{Name: t.Source, Description: o.serverDescription(t.Server)})
		}
		out.Sources[i].Tools++
	}
	return out
}

// serverDescription returns the description of a server in the settings; "" if
// there is none.
func (o *Offers) serverDescription(server string) string {
	for _, entry := range o.set.Entries() {
		if entry.Name == server {
			return entry.Description
		}
	}
	return ""
}
