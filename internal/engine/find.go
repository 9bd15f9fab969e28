package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine/listing"
	"github.com/toolreg/toolreg/internal/engine/owner"
	"github.com/toolreg/toolreg/internal/engine/rules"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// Query controls how tools are looked up. The zero value finds a tool by its
// name in the registry or else by its name in the declarations of any format.
type Query struct {
	// Call requires the server's current definition of the tool, even if one is
	// cached.
	Call bool
	// Whole looks up servers' tools by the names that they have in the whole registry, as in
	// declarations.
	Whole bool
	// Step also finds tools that an override hides from everything but the steps
	// of composites.
	Step bool
	// Format is the declaration format whose names are looked up. If it is empty, names
	// of the registry take precedence.
	Format string
	// Reach also finds the tools through which a model reaches tools that are not
	// declared, such as search_tools, if the registry has no tool of that name. Pass the
	// result to [Calls.Resolve] before calling it.
	Reach bool
	// Script also finds run_script if the settings declare it and the registry has no tool
	// of that name; otherwise the error says why it is not declared.
	Script bool
	// Scope limits the lookup to the scope of the context; see [WithScope].
	Scope bool
}

func (q Query) lookup(reg *registry.Registry, name string) (*registry.Tool, error) {
	if q.Step {
		return reg.LookupStep(name)
	}
	return reg.Lookup(name)
}

// finding is what all finders of a session have in common.
type finding struct {
	set       *settings.Settings
	rules     *rules.Rules
	names     *owner.Names
	listings  *listing.Store
	loader    *registry.Loader
	reports   *reports
	announcer *announcer
	preset    string // see [Options.Preset]
	locked    bool   // see [Options.Locked]
	recording bool   // the run is recorded
	offline   bool   // no source may be asked
}

// finder finds tools. It holds mu during a lookup.
type finder struct {
	*finding
	sources *sources.Set

	clients  clients // that have finders of their own
	ofClient bool    // it is one of these

	mu         sync.Mutex
	registries map[string]*registry.Registry // loaded registries by the name of their step
	declared   map[string]map[string]string  // format -> name as declared -> name
}

// forget drops the registries because their sources have changed. Callers may continue to
// use one that they have.
func (f *finder) forget() {
	f.registries, f.declared = map[string]*registry.Registry{}, map[string]map[string]string{}
}

// The steps of a lookup. A step that starts one server has the name of its
// source.
const (
	stepBuiltin = "builtin"
	stepLocal   = "local"
	stepUntil   = "until" // all sources, up to the first that has the name
	stepAll     = "all"
	stepShown   = "shown" // built-in tools, only to be shown
)

type step struct {
	name    string
	sources []registry.Source
	server  registry.Source // the server or API that the name refers to; nil if it refers to none
}

// find looks up a name, a second time if the cache was not sufficient, and
// explains the error if the tool does not exist.
func (f *finder) find(ctx context.Context, name string, q Query) (*registry.Registry, *registry.Tool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if named := f.sources.Of(name); named != nil {
		f.listings.ForgetFailure(named.Name()) // a named server is started even if it failed recently
	}
	reg, tool, err := f.lookup(ctx, name, q)
	if other := f.imported(name); other != "" && errors.Is(err, registry.ErrNotFound) {
		if found, t, missing := f.lookup(ctx, other, q); missing == nil {
			return found, t, nil
		} else if f.sources.Hidden(found, other) != nil {
			name, reg, err = other, found, missing
		}
	}
	for f.renewFor(ctx, reg, tool, err, q) {
		f.forget()
		reg, tool, err = f.lookup(ctx, name, q)
	}
	return reg, tool, f.explain(reg, err)
}

// imported translates the name by which another program shows a tool to its model, such as
// mcp__files__read, to the name here. It returns "" if no imported server can have such a tool.
func (f *finder) imported(name string) string {
	for _, s := range f.set.Servers {
		prefix := s.Program.ToolPrefix(s.Name)
		if tool, ok := strings.CutPrefix(name, prefix); ok && prefix != "" {
			return s.Name + "__" + tool
		}
	}
	return ""
}

// renewFor queries sources again if their cached listings are not sufficient:
// the server of a tool that is to be called, so that decisions use its current
// definition; and, if a name was not found, every source that may have the tool
// by now. It reports whether the tool has to be looked up again.
func (f *finder) renewFor(ctx context.Context, reg *registry.Registry, tool *registry.Tool, err error, q Query) bool {
	if context.Cause(ctx) != nil {
		return false
	}
	missing, notFound := errors.AsType[*registry.NotFoundError](err)
	if err != nil && (!notFound || f.offline) {
		return false
	}
	var hidden *registry.Hidden
	if notFound && missing.Hidden != nil && missing.Hidden.Kept {
		hidden = missing.Hidden
	} else if notFound {
		hidden = f.sources.Hidden(reg, missing.Name)
	}
	return f.renew(ctx, err != nil, func(source registry.Source) bool {
		switch {
		case err == nil:
			return q.Call && tool.IsMCP() && source.Name() == tool.Source
		case hidden != nil: // a lock hides changed tools, and this one may have changed back
			return (f.locked || hidden.Kept) && source.Name() == hidden.Source
		}
		return true
	})
}

// lookup tries the steps of a lookup until one finds the tool.
func (f *finder) lookup(ctx context.Context, name string, q Query) (*registry.Registry, *registry.Tool, error) {
	steps := f.steps(name, q)
	for i, step := range steps {
		reg := f.loadRegistry(ctx, step, name, q)
		t, err := f.lookupIn(reg, step.name, name, q)
		if missing, ok := errors.AsType[*registry.NotFoundError](err); ok &&
			step.name == stepUntil && missing.Hidden != nil && missing.Hidden.Kept {
			return reg, nil, err // no other server can have it
		}
		if err == nil && step.name != stepAll && f.mayBeLent(t) {
			continue
		}
		if err == nil && (step.name == stepAll || !q.Whole || !t.OfServer()) {
			return reg, t, nil
		}
		if step.server != nil && reg.Failure(step.server.Name()) != nil {
			return reg, nil, reg.Failure(step.server.Name())
		}
		if i == len(steps)-1 {
			return reg, nil, err
		}
	}
	panic("unreachable: there is a last step")
}

// mayBeLent reports whether the whole registry must be loaded to know what t is: t is a tool of the
// project, and the person's settings allow or keep a tool of one of their servers by that name.
func (f *finder) mayBeLent(t *registry.Tool) bool {
	if !t.OfProject || t.Lent {
		return false
	}
	return f.set.OnlyTools.Set || t.Optional ||
		!t.OfServer() && slices.ContainsFunc(f.rules.All, func(r policy.Rule) bool { return r.AllowsByName(t.Name) })
}

// steps returns the registries in which to look up a name, the smallest first and that of all
// sources last. No server is started for a name that belongs to a server which is turned off. Once
// all sources are loaded, smaller registries are not needed.
func (f *finder) steps(name string, q Query) []step {
	all := step{stepAll, f.sources.All(), f.sources.Of(name)}
	if f.registries[stepAll] != nil {
		return []step{all}
	}
	var out []step
	if few := f.sources.WithoutPlugins(name); few != nil && f.registries[stepLocal] == nil {
		out = append(out, step{stepBuiltin, few, nil})
	}
	switch one := all.server; {
	case len(f.sources.InUse()) == 0:
	case f.sources.FindDisabled(name) != nil && len(f.set.RawNamed("overrides")) == 0:
		// An override could give the name to any tool.
		return append(out, step{stepLocal, f.sources.Local, nil})
	case one == nil:
		out = append(out, step{stepLocal, f.sources.Local, nil})
		if !q.Whole && q.Format == "" && !f.recording {
			// Which servers answer before the tool is found differs from run to run.
			out = append(out, step{stepUntil, all.sources, nil})
		}
	case len(f.sources.InUse()) > 1:
		out = append(out, step{one.Name(), append(slices.Clone(f.sources.Local), one), one})
	}
	return append(out, all)
}

// loadRegistry loads the registry of a step once; name is the tool to look up.
func (f *finder) loadRegistry(ctx context.Context, step step, name string, q Query) *registry.Registry {
	key := step.name
	if reg := f.registries[key]; reg != nil {
		if _, err := q.lookup(reg, name); err == nil || key != stepUntil {
			return reg
		}
	}
	var reg *registry.Registry
	if key == stepUntil {
		done := f.reports.screen.Watch()
		reg = f.loader.LoadFor(ctx, step.sources, name,
			func(reg *registry.Registry) error { _, err := q.lookup(reg, name); return err })
		done()
		if len(reg.Reports()) == len(step.sources) {
			key = stepAll
		}
	} else {
		reg = f.loadSources(ctx, step.sources, key != stepAll)
	}
	if ctx.Err() == nil { // else it may lack sources
		f.registries[key] = reg
	}
	return reg
}

func (f *finder) loadSources(ctx context.Context, from []registry.Source, partial bool) *registry.Registry {
	done := f.reports.screen.Watch()
	defer done()
	return f.loader.Load(ctx, from, partial)
}

// lookupIn finds a tool in one registry. Declared names are looked up only in
// the whole registry, because in a part of it they could mean another tool.
func (f *finder) lookupIn(reg *registry.Registry, step, name string, q Query) (*registry.Tool, error) {
	t, err := q.lookup(reg, name)
	if step != stepAll {
		if err == nil && q.Format != "" && t.Name != name { // the alias may be the declared name of a server's tool
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

// declaredNames maps the names in declarations of a format to those of the
// registry. If format is empty, it maps the names of all formats except
// ambiguous ones.
func (f *finder) declaredNames(reg *registry.Registry, format string) map[string]string {
	if names := f.declared[format]; names != nil {
		return names
	}
	names := provider.OriginalNames(format, Names(reg))
	f.declared[format] = names
	return names
}

// explain adds the reason to the error about a missing tool: the setting that hides it, or the
// failure of a source that may have it.
func (f *finder) explain(reg *registry.Registry, err error) error {
	missing, ok := errors.AsType[*registry.NotFoundError](err)
	if !ok {
		return err
	}
	if missing.Hidden == nil {
		missing.Hidden = f.sources.Hidden(reg, missing.Name)
	}
	if named := f.sources.Of(missing.Name); missing.Hidden != nil ||
		len(missing.Versions) > 0 || named != nil && reg.Failure(named.Name()) == nil {
		return err // the name says which source would have the tool
	}
	if failed := reg.Failed(); len(failed) > 0 {
		return &maybeFailedError{err, failed}
	}
	return err
}

// maybeFailedError reports that a tool was not found and which failed sources
// may have it.
type maybeFailedError struct {
	err    error
	failed []string
}

func (e *maybeFailedError) Error() string {
	return fmt.Sprintf("%s failed, and may have the tool: %v", strings.Join(e.failed, ", "), e.err)
}

// Hint returns "": what failed is reported with its own hint.
func (e *maybeFailedError) Hint() string { return "" }

func (e *maybeFailedError) Unwrap() []error { return []error{registry.ErrSourceFailed, e.err} }

func (f *finder) loadStep(ctx context.Context, step step) *registry.Registry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loadRegistry(ctx, step, "", Query{})
}

// renew queries those of the wanted sources again whose listings came from the
// cache, and reports what has changed. With kept, it also queries servers that were
// kept since an earlier run, which do not always report changes.
func (f *finder) renew(ctx context.Context, kept bool, wanted func(registry.Source) bool) bool {
	var again []registry.Source
	before := map[registry.Source][]registry.Tool{}
	for _, source := range f.sources.All() {
		server, isServer := source.(*mcpclient.Source)
		if kept && isServer && server.Remembered() && wanted(source) {
			again = append(again, source)
		} else if _, cached := f.listings.Records.Served(source.Name()); cached && wanted(source) {
			again, before[source] = append(again, source), f.loader.Given(source)
			f.listings.Records.Expire(source.Name(), cache.Listing)
		}
	}
	if len(again) == 0 {
		return false
	}
	done := f.reports.screen.Watch()
	f.loader.Renew(ctx, again...)
	done()
	for _, source := range again {
		now := f.loader.Given(source)
		if _, cached := before[source]; now == nil || !cached { // it failed, which the registry reports
			continue
		}
		if changes := changesOf(before[source], now); len(changes) > 0 {
			f.reports.add(registry.Warning("cache_outdated", source.Name(),
				fmt.Sprintf("%s has changed since it was cached; the cache was updated: %s",
					source.Name(), strings.Join(changes, "; ")), ""))
		}
	}
	return true
}

// clients holds the finders of clients that have their own logins to some servers (oauth.per:
// client). No client sees what another is offered. The zero value has none.
type clients struct {
	newSources func(ctx context.Context, client string) *sources.Set // nil if no server has a login for each client

	mu      sync.Mutex
	finders map[string]*finder // by the name of the client
}

// forCaller returns the finder for the caller of ctx: that of its client, if there are servers with a
// login for each client.
func (f *finder) forCaller(ctx context.Context) *finder {
	client := caller.Token(ctx)
	if client == "" || f.clients.newSources == nil {
		return f
	}
	f.clients.mu.Lock()
	defer f.clients.mu.Unlock()
	own := f.clients.finders[client]
	if own == nil {
		from := f.clients.newSources(context.WithoutCancel(ctx), client)
		own = &finder{finding: f.finding, sources: from, ofClient: true}
		own.forget()
		f.clients.finders[client] = own
	}
	return own
}

func (f *finder) all() []*finder {
	f.clients.mu.Lock()
	defer f.clients.mu.Unlock()
	return append(slices.Collect(maps.Values(f.clients.finders)), f)
}

// maxChanges is how many changed tools are named.
const maxChanges = 5

// changesOf names the tools that differ, such as "echo (description)" or "new:
// x".
func changesOf(before, now []registry.Tool) []string {
	old := make(map[string]*registry.Tool, len(before))
	for i := range before {
		old[before[i].Name] = &before[i]
	}
	var out []string
	for i := range now {
		t := &now[i]
		was := old[t.Name]
		delete(old, t.Name)
		if was == nil {
			out = append(out, "new: "+t.Name)
			continue
		}
		var parts []string
		wasParts := was.Parts()
		for i, p := range t.Parts() {
			if p.Value != wasParts[i].Value {
				parts = append(parts, p.Name)
			}
		}
		if len(parts) > 0 {
			out = append(out, fmt.Sprintf("%s (%s)", t.Name, strings.Join(parts, ", ")))
		}
	}
	for i := range before {
		if old[before[i].Name] != nil {
			out = append(out, "removed: "+before[i].Name)
		}
	}
	if more := len(out) - maxChanges; more > 0 {
		out = append(out[:maxChanges], fmt.Sprintf("and %d more", more))
	}
	return out
}
