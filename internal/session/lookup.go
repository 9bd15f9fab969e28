package session

import (
	"context"
	"slices"

	"github.com/toolreg/toolreg/internal/registry"
)

// Find returns the tool of a name. It starts what the name cannot rule out and
// nothing else (spec section 6.4): the name of a built-in tool starts neither
// plugins nor servers, server__tool that one server, the name of any other local
// tool no server; every other name starts all. Where the source that a name
// speaks of failed, that is the error; no other is started then.
//
// Errors: a *registry.NotFoundError, with registry.ErrSourceFailed where a source
// failed that could have had the tool; the failure of the source; the cause of
// ctx. The registry that was looked in last comes with every error but the last,
// for what was noticed while it was loaded.
func (s *Session) Find(ctx context.Context, name string, q Query) (Found, error) {
	f, err := s.finder.find(ctx, name, q)
	if cause := context.Cause(ctx); cause != nil {
		return Found{}, cause
	}
	if err := s.announce(ctx, f.Registry); err != nil {
		return f, err
	}
	return f, err
}

// All loads the whole registry. The error is the cause of ctx; what was there by
// then comes with it.
func (s *Session) All(ctx context.Context) (*registry.Registry, error) {
	reg := s.finder.loadStep(ctx, step{name: stepAll, sources: s.sources.all()})
	if err := context.Cause(ctx); err != nil {
		return reg, err
	}
	reg = s.resolveComposites(ctx, reg)
	(&matcher{s.run, s.sources, s.loader, s.notice}).check(ctx, reg)
	return reg, s.announce(ctx, reg)
}

// Local loads the tools that need no server. Tools of servers are not in it.
func (s *Session) Local(ctx context.Context) (*registry.Registry, error) {
	return s.finder.loadStep(ctx, step{name: stepLocal, sources: s.sources.local}), context.Cause(ctx)
}

// BuiltIn loads the built-in tools alone, which starts nothing: what there is to
// show at once. A call needs [Session.Find], since other sources may take the names
// of built-in tools.
func (s *Session) BuiltIn(ctx context.Context) *registry.Registry {
	own := slices.DeleteFunc(slices.Clone(s.sources.local), func(source registry.Source) bool { return source.Name() != registry.SourceBuiltin })
	return s.finder.loadStep(ctx, step{name: stepShown, sources: own})
}

// FindAll finds the tools of several names in one registry, in its order and with
// the versions that were named; it is the whole one where a server's tool is
// among them, since its name depends on all servers. Errors are those of
// [Session.Find], with the registry that was looked in.
func (s *Session) FindAll(ctx context.Context, names ...string) (*registry.Registry, []*registry.Tool, error) {
	var reg *registry.Registry
	found := make([]Found, len(names))
	for i, name := range names {
		f, err := s.Find(ctx, name, Query{Whole: true})
		if err != nil {
			return f.Registry, nil, err
		}
		if found[i] = f; reg == nil || f.Registry.Len() > reg.Len() { // what holds more holds the others
			reg = f.Registry
		}
	}
	wanted := map[*registry.Tool]bool{}
	for i, f := range found {
		t := f.Tool
		if f.Registry != reg {
			var err error
			if t, err = reg.Lookup(names[i]); err != nil {
				return reg, nil, err
			}
		}
		wanted[t] = true
	}
	var tools []*registry.Tool
	for _, t := range reg.Tools() {
		for _, v := range reg.Versions(t.Name) {
			if wanted[v] {
				tools = append(tools, v)
			}
		}
	}
	return reg, tools, nil
}
