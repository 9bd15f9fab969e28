package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// registered looks up a tool of the registry; see [Tools.Find].
func (f *finder) registered(ctx context.Context, name string, q Query) (Found, error) {
	reg, tool, err := f.forCaller(ctx).find(ctx, name, q)
	if cause := context.Cause(ctx); cause != nil {
		return Found{}, cause
	}
	return Found{Registry: reg, Tool: tool}, err
}

// shown returns what was found, or the error, limited to what the caller of ctx may see.
func (f *finder) shown(ctx context.Context, name string, q Query, found Found, err error) (Found, error) {
	if found.Registry == nil {
		return found, err
	}
	f.announcer.announce(ctx, found.Registry)
	s := scopeOf(ctx)
	if !q.Scope || len(s.tools)+len(s.servers) == 0 {
		return found, err
	}
	named := f.forCaller(ctx).sources.Of(name)
	if err == nil && found.reach == nil && !s.showsTool(found.Tool) ||
		err != nil && named != nil && !s.showsSource(named.Name()) {
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
	own := f.forCaller(ctx)
	reg := own.loadStep(ctx, step{name: stepAll, sources: own.sources.All()})
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
	return f.loadStep(ctx, step{name: stepLocal, sources: f.sources.Local}), context.Cause(ctx)
}

// BuiltIn loads only the built-in tools, without starting anything, for output that must
// not wait. To call a tool use [Tools.Find], because other sources may override names
// of built-in tools.
func (f *finder) BuiltIn(ctx context.Context) *registry.Registry {
	own := slices.DeleteFunc(slices.Clone(f.sources.Local),
		func(source registry.Source) bool { return source.Name() != registry.SourceBuiltin })
	return f.loadStep(ctx, step{name: stepShown, sources: own})
}

type scopeKey struct{}

// scope is what a caller may see. The zero value allows everything.
type scope struct {
	tools   []func(*registry.Tool) bool // all must allow a tool
	servers []func(name string) bool    // and a server or API
}

// WithScope returns a context that limits which tools scripts and call_tool can find, describe and
// call: to those that a model could call itself. Errors do not name other tools, servers or APIs. A
// nil function allows everything.
func WithScope(ctx context.Context, tools func(*registry.Tool) bool, servers func(name string) bool) context.Context {
	outer := scopeOf(ctx)
	inner := scope{slices.Clone(outer.tools), slices.Clone(outer.servers)}
	if tools != nil {
		inner.tools = append(inner.tools, tools)
	}
	if servers != nil {
		inner.servers = append(inner.servers, servers)
	}
	return context.WithValue(ctx, scopeKey{}, inner)
}

func scopeOf(ctx context.Context) scope {
	s, _ := ctx.Value(scopeKey{}).(scope)
	return s
}

func (s scope) showsTool(t *registry.Tool) bool {
	return !slices.ContainsFunc(s.tools, func(allowed func(*registry.Tool) bool) bool { return !allowed(t) })
}

func (s scope) showsServer(name string) bool {
	return !slices.ContainsFunc(s.servers, func(allowed func(string) bool) bool { return !allowed(name) })
}

// showsSource reports whether a source may be named. Those that are neither servers nor APIs are the
// person's own programs.
func (s scope) showsSource(name string) bool {
	if len(s.tools)+len(s.servers) == 0 {
		return true
	}
	server, ok := registry.ServerOf(name)
	return ok && s.showsServer(server)
}

// ScopeError converts the error of a lookup to what the caller of ctx may see: a name outside the
// scope gives the same error as a name that does not exist.
func ScopeError(ctx context.Context, reg *registry.Registry, name string, err error) error {
	s := scopeOf(ctx)
	if err == nil || reg == nil || len(s.tools)+len(s.servers) == 0 {
		return err
	}
	missing, ok := errors.AsType[*registry.NotFoundError](err)
	if !ok {
		return err
	}
	out := &registry.NotFoundError{Name: missing.Name}
	if h := missing.Hidden; h != nil && s.showsHidden(reg, h) {
		out.Hidden = h
	}
	for _, t := range reg.Tools() {
		if s.showsTool(t) {
			out.Count++
			if strings.HasPrefix(missing.Name, t.Name+"@") {
				out.Versions = missing.Versions
			}
		}
	}
	if out.Hidden == nil && len(out.Versions) == 0 {
		out.Near = reg.Near(name, s.showsTool)
	}
	if failed, ok := errors.AsType[*maybeFailedError](err); ok && out.Hidden == nil {
		if of := slices.DeleteFunc(slices.Clone(failed.failed),
			func(source string) bool { return !s.showsSource(source) }); len(of) > 0 {
			return &maybeFailedError{out, of}
		}
	}
	return out
}

// showsHidden reports whether the reason why a tool is hidden may be known.
func (s scope) showsHidden(reg *registry.Registry, h *registry.Hidden) bool {
	if h.Now != "" {
		t, err := reg.Lookup(h.Now)
		return err == nil && s.showsTool(t)
	}
	if h.Kept {
		return s.showsSource(h.Source)
	}
	server, _ := registry.ServerOf(h.Source)
	return (server == "" || s.showsServer(server)) &&
		s.showsTool(&registry.Tool{Definition: registry.Definition{Name: h.Name, Source: h.Source, Server: server}})
}

// Definitions returns the definitions of tools under names that select exactly
// these versions.
func Definitions(reg *registry.Registry, tools []*registry.Tool) []registry.Definition {
	out := make([]registry.Definition, len(tools))
	for i, t := range tools {
		out[i] = Definition(reg, t)
	}
	return out
}

// AllDefinitions returns the definitions of all versions of all tools of the registry.
func AllDefinitions(reg *registry.Registry) []registry.Definition {
	var tools []*registry.Tool
	for _, t := range reg.Tools() {
		tools = append(tools, reg.Versions(t.Name)...)
	}
	return Definitions(reg, tools)
}

// Names returns the names of all definitions of a registry, including tools that settings exclude.
// Declared names depend on all of them, so that a tool has the same name in runs with different
// flags.
func Names(reg *registry.Registry) []string {
	var out []string
	for _, d := range AllDefinitions(reg) {
		out = append(out, d.Name)
	}
	for _, h := range reg.Hidden() {
		out = append(out, registry.ValidName(h.Name))
	}
	return out
}

// Definition returns a tool's definition under the name that selects exactly
// this version.
func Definition(reg *registry.Registry, t *registry.Tool) registry.Definition {
	d := t.Definition
	if newest, err := reg.Lookup(t.Name); err == nil && newest != t && t.Version != "" {
		d.Name = t.Name + "@" + t.Version
	}
	return d
}

// Found is a tool with the registry in which it was found, which may have only
// some of the tools.
type Found struct {
	Registry *registry.Registry
	Tool     *registry.Tool
	reach    *reach // nil if Tool belongs to Registry
}

// reach says which of search_tools, describe_tools and call_tool a found tool is. With these a model
// reaches tools that are not declared.
type reach struct {
	kind     string // such as deferred.SearchTools
	format   string // format of the names that the model knows; "" stands for those of the registry
	offered  []*registry.Tool
	names    map[string]string // names of the three tools, by kind
	declared map[string]string // declared names, by name; nil if they are the same
}

// nameOf returns the name by which the model knows a tool.
func (r *reach) nameOf(t *registry.Tool) string {
	if name := r.declared[t.Name]; name != "" {
		return name
	}
	return t.Name
}

// FoundIn returns tools of a registry as if they had been looked up in it.
func FoundIn(reg *registry.Registry, tools []*registry.Tool) []Found {
	out := make([]Found, len(tools))
	for i, t := range tools {
		out[i] = Found{Registry: reg, Tool: t}
	}
	return out
}
