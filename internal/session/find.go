package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/declare"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
)

// Query says what tools are looked for. The zero value looks for a tool by a
// name of the registry, or else by one that declarations of any format give it.
type Query struct {
	// Call wants the definition that the tool's server has now, whatever is kept
	// of it in the cache.
	Call bool
	// Whole wants tools of servers under the names that the whole registry gives
	// them, as declarations do.
	Whole bool
	// Format makes names those that declarations of this format have. "": names
	// of the registry come first.
	Format string
}

// Found is a tool with the registry that it was found in, which may hold a part
// of all tools alone.
type Found struct {
	Registry *registry.Registry
	Tool     *registry.Tool
}

// finder finds tools. Its mu is held while it looks.
type finder struct {
	*run
	cached  *listings
	sources *sources
	loader  *registry.Loader
	renewer renewer

	mu         sync.Mutex
	registries map[string]*registry.Registry // that were loaded, by the name of the step
	declared   map[string]map[string]string  // format -> name as declared -> name
}

// forget drops the registries, whose sources have changed. Whoever has one keeps
// it.
func (f *finder) forget() { f.registries, f.declared = nil, nil }

// The steps of a search; a step that starts one server has its source's name.
const (
	stepBuiltin = "builtin"
	stepLocal   = "local"
	stepUntil   = "until" // all sources up to the first that has the name
	stepAll     = "all"
	stepShown   = "shown" // built-in tools, for showing them alone
)

// step is one registry to look in.
type step struct {
	name    string
	sources []registry.Source
	server  *mcpclient.Source // that the name speaks of; nil = none
}

// find looks a name up, again where the cache gave too little, and completes the
// error about one that is missing.
func (f *finder) find(ctx context.Context, name string, q Query) (Found, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if named := f.sources.serverOf(name); named != nil {
		f.cached.failures.Expire(named.Name()) // whoever names a server wants it asked
	}
	found, err := f.lookup(ctx, name, q)
	for f.renewFor(ctx, found, err, q) {
		f.forget()
		found, err = f.lookup(ctx, name, q)
	}
	return found, f.explain(found.Registry, err)
}

// renewFor asks the sources again whose word from the cache is not enough: the
// server of a tool that is to be called, so that what is decided on is what it
// has now; and where a name was not found, every source that could have it by
// now. It reports whether the tool has to be looked up again.
func (f *finder) renewFor(ctx context.Context, found Found, err error, q Query) bool {
	if context.Cause(ctx) != nil {
		return false
	}
	missing, notFound := errors.AsType[*registry.NotFoundError](err)
	if err != nil && (!notFound || f.opts.Cache == cache.Offline) {
		return false
	}
	var hidden *registry.Hidden
	if notFound {
		hidden = f.sources.hidden(found.Registry, missing.Name)
	}
	return f.renewer.renew(ctx, func(source registry.Source) bool {
		switch {
		case err == nil:
			return q.Call && found.Tool.IsMCP() && source.Name() == found.Tool.Source
		case hidden != nil: // a lock hides what has changed, and it may have changed back
			return f.opts.Locked && source.Name() == hidden.Source
		}
		return true
	})
}

// lookup takes the steps of a search until one finds the tool.
func (f *finder) lookup(ctx context.Context, name string, q Query) (Found, error) {
	for _, step := range f.steps(name, q) {
		reg := f.load(ctx, step, name)
		t, err := f.lookupIn(reg, step.name, name, q)
		if err == nil && (step.name == stepAll || !q.Whole || !t.IsMCP()) {
			return Found{reg, t}, nil
		}
		if failed := sourceError(reg, step.server); failed != nil {
			return Found{Registry: reg}, failed
		}
		if step.name == stepAll {
			return Found{Registry: reg}, err
		}
	}
	panic("the last step holds all sources")
}

// steps are the registries to look for a name in, the smallest first and all
// sources last. Once all are loaded nothing is won by looking elsewhere.
func (f *finder) steps(name string, q Query) []step {
	all := step{stepAll, f.sources.all(), f.sources.serverOf(name)}
	if f.registries[stepAll] != nil {
		return []step{all}
	}
	var out []step
	if few := f.sources.withoutPlugins(name); few != nil && f.registries[stepLocal] == nil {
		out = append(out, step{stepBuiltin, few, nil})
	}
	switch one := all.server; {
	case len(f.sources.servers) == 0:
	case one == nil:
		out = append(out, step{stepLocal, f.sources.local, nil})
		if !q.Whole && q.Format == "" {
			out = append(out, step{stepUntil, all.sources, nil})
		}
	case len(f.sources.servers) > 1:
		out = append(out, step{one.Name(), append(slices.Clone(f.sources.local), one), one})
	}
	return append(out, all)
}

// load loads the registry of a step, once; name is what is looked for.
func (f *finder) load(ctx context.Context, step step, name string) *registry.Registry {
	key := step.name
	if reg := f.registries[key]; reg != nil {
		if _, err := reg.Lookup(name); err == nil || key != stepUntil {
			return reg
		}
	}
	var reg *registry.Registry
	if key == stepUntil {
		if reg = f.loadUntil(ctx, step.sources, name); len(reg.Reports()) == len(step.sources) {
			key = stepAll
		}
	} else {
		reg = f.loadSources(ctx, step.sources, key != stepAll)
	}
	if f.registries == nil {
		f.registries = map[string]*registry.Registry{}
	}
	f.registries[key] = reg
	return reg
}

// loadUntil runs sources until one has the tool of a name, showing what goes on.
func (f *finder) loadUntil(ctx context.Context, from []registry.Source, name string) *registry.Registry {
	done := f.deps.Screen.Watch()
	defer done()
	return f.loader.LoadFor(ctx, from, name)
}

// loadSources runs sources, showing what goes on.
func (f *finder) loadSources(ctx context.Context, from []registry.Source, partial bool) *registry.Registry {
	done := f.deps.Screen.Watch()
	defer done()
	return f.loader.Load(ctx, from, partial)
}

// lookupIn finds a tool in one registry. Names as declared are those of the
// whole registry alone: in a part of it they could mean another tool.
func (f *finder) lookupIn(reg *registry.Registry, step, name string, q Query) (*registry.Tool, error) {
	t, err := reg.Lookup(name)
	if step != stepAll {
		if err == nil && q.Format != "" && t.Name != name { // an alias may be what a server's tool is declared as
			return nil, &registry.NotFoundError{Name: name}
		}
		return t, err
	}
	if err == nil && q.Format == "" {
		return t, nil
	}
	if original := f.declaredNames(reg, q.Format)[name]; original != "" {
		return reg.Lookup(original)
	}
	return t, err
}

// declaredNames maps the names that declarations of a format have to those of
// the registry; with format "" those of all formats, without the ambiguous ones.
func (f *finder) declaredNames(reg *registry.Registry, format string) map[string]string {
	if names := f.declared[format]; names != nil {
		return names
	}
	if f.declared == nil {
		f.declared = map[string]map[string]string{}
	}
	names := declare.OriginalNames(format, Names(reg))
	f.declared[format] = names
	return names
}

// Declared maps the names of the whole registry to those that declarations of a
// format have.
func (s *Session) Declared(whole *registry.Registry, format string) map[string]string {
	s.finder.mu.Lock()
	defer s.finder.mu.Unlock()
	out := map[string]string{}
	for declared, name := range s.finder.declaredNames(whole, format) {
		out[name] = declared
	}
	return out
}

// explain completes the error about a missing tool: with the setting that hides
// it, and with the failure of a source that could have had it.
func (f *finder) explain(reg *registry.Registry, err error) error {
	missing, ok := errors.AsType[*registry.NotFoundError](err)
	if !ok {
		return err
	}
	if missing.Hidden == nil {
		missing.Hidden = f.sources.hidden(reg, missing.Name)
	}
	if missing.Hidden != nil || len(missing.Versions) > 0 || f.answered(reg, f.sources.serverOf(missing.Name)) {
		return err // it is known where the tool would be
	}
	var failed []string
	for _, r := range reg.Reports() {
		if r.State == registry.StateFailed {
			failed = append(failed, r.Name)
		}
	}
	if len(failed) > 0 {
		return &maybeFailedError{err, failed}
	}
	return err
}

// maybeFailedError tells that a tool is missing, and which sources failed that may
// have it.
type maybeFailedError struct {
	err    error
	failed []string
}

func (e *maybeFailedError) Error() string {
	return fmt.Sprintf("%v; it may be a tool of what failed: %s", e.err, strings.Join(e.failed, ", "))
}

func (e *maybeFailedError) Unwrap() []error { return []error{registry.ErrSourceFailed, e.err} }

// answered reports whether a server gave its tools; of none it is false.
func (f *finder) answered(reg *registry.Registry, server *mcpclient.Source) bool {
	return server != nil && sourceError(reg, server) == nil
}

// sourceError returns why a server gave no tools; nil where it did, and of none.
func sourceError(reg *registry.Registry, server *mcpclient.Source) error {
	if server == nil {
		return nil
	}
	for _, r := range reg.Reports() {
		if r.Name == server.Name() {
			return r.Err
		}
	}
	return nil
}

func (f *finder) loadStep(ctx context.Context, step step) *registry.Registry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.load(ctx, step, "")
}

// reload loads all sources again, of which some were renewed.
func (f *finder) reload(ctx context.Context) *registry.Registry {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget()
	return f.load(ctx, step{name: stepAll, sources: f.sources.all()}, "")
}

// Definitions lists tools under the names that find these very versions; of a
// nil list all tools of the registry with all their versions.
func Definitions(reg *registry.Registry, tools []*registry.Tool) []registry.Definition {
	if tools == nil {
		for _, t := range reg.Tools() {
			tools = append(tools, reg.Versions(t.Name)...)
		}
	}
	out := make([]registry.Definition, len(tools))
	for i, t := range tools {
		out[i] = Definition(reg, t)
	}
	return out
}

// Names are the names of all definitions of a registry, and of the tools that
// settings keep out of it: what tools are declared as depends on all of them, so
// that a tool has one name in runs that differ in flags.
func Names(reg *registry.Registry) []string {
	var out []string
	for _, d := range Definitions(reg, nil) {
		out = append(out, d.Name)
	}
	for _, h := range reg.Hidden() {
		out = append(out, registry.ValidName(h.Name))
	}
	return out
}

// Definition is a tool's definition under the name that finds this very version.
func Definition(reg *registry.Registry, t *registry.Tool) registry.Definition {
	d := t.Definition
	if newest, err := reg.Lookup(t.Name); err == nil && newest != t && t.Version != "" {
		d.Name = t.Name + "@" + t.Version
	}
	return d
}
