package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Tools finds the tools of a session. It is safe for concurrent use.
type Tools struct {
	finder  *finder
	offers  *Offers
	scripts *Scripts
}

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
func (t *Tools) Find(ctx context.Context, name string, q Query) (Found, error) {
	f, err := t.finder.registered(ctx, name, q)
	if missing, ok := errors.AsType[*registry.NotFoundError](err); ok && (q.Reach || q.Script) && missing.Hidden == nil {
		own, ok := t.scripts.find(f.Registry, name, q.Format)
		var reachErr error
		if !ok && q.Reach {
			own, ok, reachErr = t.offers.reaching(ctx, f.Registry, name, q.Format)
		}
		if ok || reachErr != nil {
			f, err = own, reachErr
		} else if isScriptName(name) {
			_, hidden, listErr := t.scripts.Listed(ctx, f.Registry)
			if hidden != nil && hidden.Name == name {
				missing.Hidden = hidden
			}
			err = cmp.Or(listErr, err)
		}
	}
	return t.finder.shown(ctx, name, q, f, err)
}

// Loaded returns the whole registry if it has been loaded, else nil.
func (t *Tools) Loaded() *registry.Registry {
	t.finder.mu.Lock()
	defer t.finder.mu.Unlock()
	return t.finder.registries[stepAll]
}

// All loads the whole registry. The error is the cause of ctx; the registry
// then has what was loaded before.
func (t *Tools) All(ctx context.Context) (*registry.Registry, error) { return t.finder.whole(ctx) }

// Local loads the tools that need no server.
func (t *Tools) Local(ctx context.Context) (*registry.Registry, error) {
	return t.finder.localOnly(ctx)
}

// BuiltIn loads only the built-in tools, without starting anything, for output that must
// not wait. To call a tool use [Tools.Find], because other sources may override names
// of built-in tools.
func (t *Tools) BuiltIn(ctx context.Context) *registry.Registry { return t.finder.builtIn(ctx) }

// FindAll finds the tools with several names in one registry, in the order of
// the registry and in the versions that were named. A name may be a glob, which
// must match a tool. It loads the whole registry if one of them is a glob or a
// server's tool, because its name depends on all servers.
// Errors are those of [Tools.Find], with the registry that was searched.
func (t *Tools) FindAll(ctx context.Context, names ...string) (*registry.Registry, []*registry.Tool, error) {
	if slices.ContainsFunc(names, text.IsGlob) {
		return t.matchAll(ctx, names)
	}
	var reg *registry.Registry
	found := make([]Found, len(names))
	for i, name := range names {
		f, err := t.Find(ctx, name, Query{Whole: true})
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
func (t *Tools) matchAll(ctx context.Context, names []string) (*registry.Registry, []*registry.Tool, error) {
	reg, err := t.All(ctx)
	if err != nil {
		return reg, nil, err
	}
	wanted := map[*registry.Tool]bool{}
	for _, name := range names {
		tools, err := t.Matching(reg, name)
		if err != nil {
			return reg, nil, err
		}
		for _, t := range tools {
			wanted[t] = true
		}
	}
	return reg, inOrder(reg, wanted), nil
}

// Matching is [registry.Registry.Matching] with the errors of [Tools.Find].
func (t *Tools) Matching(reg *registry.Registry, glob string) ([]*registry.Tool, error) {
	tools, err := reg.Matching(glob)
	if err != nil {
		return nil, t.finder.explain(reg, err)
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

// LoadServers connects to servers, reads the documents of APIs, and lists their tools, which have qualified
// names. The error is the cause of ctx.
func (t *Tools) LoadServers(ctx context.Context, servers []*mcpclient.Source, apis ...*openapi.Source) (*registry.Registry, error) {
	from := (&Servers{on: servers, apis: apis}).sources()
	return t.finder.loadSources(ctx, from, true), context.Cause(ctx)
}

// Discovery runs all sources, or only the named servers, and returns a report
// on each; the tools are in the registry. The error is a *NoServerError or the
// cause of ctx.
func (t *Tools) Discovery(ctx context.Context, servers ...string) (*registry.Registry, []SourceReport, error) {
	from := t.finder.sources.all()
	on, off, err := t.finder.sources.Named(servers...)
	if err != nil {
		return nil, nil, err
	}
	if len(servers) > 0 {
		from = (&Servers{on: on, apis: t.finder.sources.APIs(servers...)}).sources()
	}
	reg := t.finder.loadSources(ctx, from, len(servers) > 0)
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	if len(servers) == 0 {
		reg = t.finder.resolveComposites(ctx, reg)
	}
	return reg, t.Reports(reg, off), nil
}

// SourceReport describes the outcome of one source.
type SourceReport struct {
	Name       string         `json:"name"`
	Kind       string         `json:"kind"`
	State      registry.State `json:"state"`
	Tools      int            `json:"tools"`              // tools found, before filters and conflicts
	DurationMs int64          `json:"durationMs"`         // time that it took
	Error      string         `json:"error,omitempty"`    // why it failed
	CachedAt   *time.Time     `json:"cachedAt,omitempty"` // for a cached list: when the source was queried
	AgeMs      int64          `json:"ageMs,omitempty"`    // for a cached list: milliseconds since then
}

// Reports returns the outcome of each source of a registry, with servers that
// are turned off last.
func (t *Tools) Reports(reg *registry.Registry, off []OffServer) []SourceReport {
	out := []SourceReport{}
	for _, r := range reg.Reports() {
		kind, _, _ := strings.Cut(r.Name, ":")
		report := SourceReport{Name: r.Name, Kind: kind, State: r.State, Tools: r.Tools, DurationMs: r.Duration.Milliseconds()}
		if r.Err != nil {
			report.Error = r.Err.Error()
		}
		if at, cached := t.finder.listings.Records.Served(r.Name); cached {
			report.CachedAt, report.AgeMs = &at, t.finder.listings.Records.Age(r.Name).Milliseconds()
		}
		out = append(out, report)
	}
	for _, server := range off {
		kind, _, _ := strings.Cut(server.Source(), ":")
		out = append(out, SourceReport{Name: server.Source(), Kind: kind, State: registry.StateSkipped, Error: server.Reason()})
	}
	return out
}

// Diagnostics returns all diagnostics so far: those of the session, then those
// of loading reg. If both report the same, it appears once.
func (t *Tools) Diagnostics(reg *registry.Registry) []registry.Diagnostic {
	return t.finder.reports.with(reg.Diagnostics())
}

// NameOwner returns the server in the settings to which a plain name of servers' tools
// belongs; "" if it belongs to none.
func (t *Tools) NameOwner(name string) string {
	owner := t.finder.names.Owner(name).Server
	if slices.Contains(t.finder.set.ServerNamesKnown(), owner) {
		return owner
	}
	return ""
}
