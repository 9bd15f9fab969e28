package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Find returns the tool with a name. It starts only sources that may have it: for the
// name of a built-in tool neither plugins nor servers, for server__tool only that server,
// for the name of any other local tool no server, and for every other name all servers.
// If the source that the name refers to failed, Find returns its error and starts no
// other.
//
// Errors: a *registry.NotFoundError, with registry.ErrSourceFailed if a failed
// source may have the tool; the failure of the source; the cause of ctx. Except
// for the last, errors come with the registry that was searched last, for the
// diagnostics of loading it.
func (s *Session) Find(ctx context.Context, name string, q Query) (Found, error) {
	f, err := s.finder.find(ctx, name, q)
	if cause := context.Cause(ctx); cause != nil {
		return Found{}, cause
	}
	if missing, ok := errors.AsType[*registry.NotFoundError](err); ok && q.Reach && missing.Hidden == nil {
		own, ok, reachErr := s.reaching(ctx, f.Registry, name, q.Format)
		if ok || reachErr != nil {
			f, err = own, reachErr
		}
	}
	if err := s.announce(ctx, f.Registry); err != nil {
		return f, err
	}
	return f, err
}

// All loads the whole registry. The error is the cause of ctx; the registry
// then has what was loaded before.
func (s *Session) All(ctx context.Context) (*registry.Registry, error) {
	reg := s.finder.loadStep(ctx, step{name: stepAll, sources: s.sources.all()})
	if err := context.Cause(ctx); err != nil {
		return reg, err
	}
	reg = s.resolveComposites(ctx, reg)
	s.checkNames(ctx, reg)
	return reg, s.announce(ctx, reg)
}

// checkNames warns about names in the settings that match nothing in the whole
// registry.
func (s *Session) checkNames(ctx context.Context, reg *registry.Registry) {
	if s.opts.Preset != "" {
		return // a preset omits sources
	}
	names := &nameCheck{Settings: s.set, Registry: reg, Sources: s.sources.all(), Given: s.loader.Given, Plugins: s.sources.plugins, Servers: s.sources.serverNames(), Notice: s.notice,
		ServerOf: func(name string) string {
			if server := s.sources.serverOf(name); server != nil {
				return server.Name()
			}
			return ""
		}}
	for _, off := range s.sources.off {
		names.Off = append(names.Off, off.Name)
	}
	if set, err := ReadHooks(ctx, s.set, s.expander, s.deps.Environ); err == nil { // errors in hooks are reported when they run
		names.Hooks = set
	}
	names.Check()
}

// Relist queries servers for their tools again, for registries that are loaded later. A
// server that fails keeps its earlier tools and is reported in the error.
func (s *Session) Relist(ctx context.Context, servers ...*mcpclient.Source) error {
	sources := make([]registry.Source, len(servers))
	for i, server := range servers {
		sources[i] = server
	}
	err := s.loader.Refresh(ctx, sources...)
	s.finder.mu.Lock()
	s.finder.forget()
	s.finder.mu.Unlock()
	s.gate.forget()
	return err
}

// Local loads the tools that need no server.
func (s *Session) Local(ctx context.Context) (*registry.Registry, error) {
	return s.finder.loadStep(ctx, step{name: stepLocal, sources: s.sources.local}), context.Cause(ctx)
}

// BuiltIn loads only the built-in tools, without starting anything, for output that must
// not wait. To call a tool use [Session.Find], because other sources may override names
// of built-in tools.
func (s *Session) BuiltIn(ctx context.Context) *registry.Registry {
	own := slices.DeleteFunc(slices.Clone(s.sources.local), func(source registry.Source) bool { return source.Name() != registry.SourceBuiltin })
	return s.finder.loadStep(ctx, step{name: stepShown, sources: own})
}

// FindAll finds the tools with several names in one registry, in the order of
// the registry and in the versions that were named. A name may be a glob, which
// must match a tool. It loads the whole registry if one of them is a glob or a
// server's tool, because its name depends on all servers.
// Errors are those of [Session.Find], with the registry that was searched.
func (s *Session) FindAll(ctx context.Context, names ...string) (*registry.Registry, []*registry.Tool, error) {
	if slices.ContainsFunc(names, text.IsGlob) {
		return s.matchAll(ctx, names)
	}
	var reg *registry.Registry
	found := make([]Found, len(names))
	for i, name := range names {
		f, err := s.Find(ctx, name, Query{Whole: true})
		if err != nil {
			return f.Registry, nil, err
		}
		if found[i] = f; reg == nil || f.Registry.Len() > reg.Len() { // the larger registry includes the others
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
	return reg, inOrder(reg, wanted), nil
}

// matchAll finds tools by names and globs in the whole registry.
func (s *Session) matchAll(ctx context.Context, names []string) (*registry.Registry, []*registry.Tool, error) {
	reg, err := s.All(ctx)
	if err != nil {
		return reg, nil, err
	}
	wanted := map[*registry.Tool]bool{}
	for _, name := range names {
		tools, err := s.Matching(reg, name)
		if err != nil {
			return reg, nil, err
		}
		for _, t := range tools {
			wanted[t] = true
		}
	}
	return reg, inOrder(reg, wanted), nil
}

// Matching is [registry.Registry.Matching] with the errors of [Session.Find].
func (s *Session) Matching(reg *registry.Registry, glob string) ([]*registry.Tool, error) {
	tools, err := reg.Matching(glob)
	if err != nil {
		return nil, s.finder.explain(reg, err)
	}
	return tools, nil
}

// inOrder returns the wanted tools in the order of the registry.
func inOrder(reg *registry.Registry, wanted map[*registry.Tool]bool) []*registry.Tool {
	var tools []*registry.Tool
	for _, t := range reg.Tools() {
		for _, v := range reg.Versions(t.Name) {
			if wanted[v] {
				tools = append(tools, v)
			}
		}
	}
	return tools
}
