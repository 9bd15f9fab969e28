package engine

import (
	"context"
	"slices"

	"github.com/toolreg/toolreg/internal/registry"
)

// registered looks up a tool of the registry; see [Tools.Find].
func (f *finder) registered(ctx context.Context, name string, q Query) (Found, error) {
	reg, tool, err := f.of(ctx).find(ctx, name, q)
	if cause := context.Cause(ctx); cause != nil {
		return Found{}, cause
	}
	return Found{Registry: reg, Tool: tool}, err
}

// shown returns what was found, or the error, as the caller of ctx may see it.
func (f *finder) shown(ctx context.Context, name string, q Query, found Found, err error) (Found, error) {
	if found.Registry == nil {
		return found, err
	}
	f.announcer.announce(ctx, found.Registry)
	s := scopeOf(ctx)
	if !q.Scope || len(s.tools)+len(s.servers) == 0 {
		return found, err
	}
	named := f.of(ctx).sources.Of(name)
	if err == nil && found.reach == nil && !s.showsTool(found.Tool) || err != nil && named != nil && !s.showsSource(named.Name()) {
		err = &registry.NotFoundError{Name: name}
	}
	return found, ScopeError(ctx, found.Registry, name, err)
}

// Find is [Tools.Find] for tools of the registry alone.
func (f *finder) Find(ctx context.Context, name string, q Query) (Found, error) {
	found, err := f.registered(ctx, name, q)
	return f.shown(ctx, name, q, found, err)
}

// All loads the whole registry. The error is the cause of ctx; the registry
// then has what was loaded before.
func (f *finder) All(ctx context.Context) (*registry.Registry, error) {
	own := f.of(ctx)
	reg := own.loadStep(ctx, step{name: stepAll, sources: own.sources.all()})
	if err := context.Cause(ctx); err != nil {
		return reg, err
	}
	reg = own.resolveComposites(ctx, reg)
	if !own.ofClient {
		own.checkNames(reg)
	}
	f.announcer.announce(ctx, reg)
	return reg, nil
}

// Local loads the tools that need no server.
func (f *finder) Local(ctx context.Context) (*registry.Registry, error) {
	return f.loadStep(ctx, step{name: stepLocal, sources: f.sources.local}), context.Cause(ctx)
}

// BuiltIn loads only the built-in tools, without starting anything, for output that must
// not wait. To call a tool use [Tools.Find], because other sources may override names
// of built-in tools.
func (f *finder) BuiltIn(ctx context.Context) *registry.Registry {
	own := slices.DeleteFunc(slices.Clone(f.sources.local), func(source registry.Source) bool { return source.Name() != registry.SourceBuiltin })
	return f.loadStep(ctx, step{name: stepShown, sources: own})
}
