// Package engine turns settings into a registry of tools and calls them. It creates the
// sources of a run, starts those that a request needs, finds tools by name, and makes
// every call through package exec with the middleware that the settings configure.
//
// It knows nothing about flags, terminals or exit codes: what it needs is passed in
// [Deps], and failures are returned as typed errors and diagnostics. The commands of
// internal/cli are one front end for it.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/overrides"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/store"
)

// Session is one run over one set of sources. Its parts and methods are safe for
// concurrent use.
type Session struct {
	Settings    *settings.Settings // must not be changed
	Expander    *values.Expander   // of the settings
	Tools       *Tools
	Offers      *Offers
	Calls       *Calls
	Servers     *Servers
	Connections *Connections
	Plugins     *Plugins
	Scripts     *Scripts
	Tasks       *Tasks
	OfferOwners *OfferOwners
	Records     *cache.Store // what sources answered in earlier runs

	// Store is what processes that serve the same clients share; nil: nothing. See
	// [Options.Shared].
	Store *store.Store

	run    *run
	cached *listingStore
	loader *registry.Loader
	gate   *gate
}

// New creates the sources of a run without starting them. The error is an
// *InputError, or a *settings.Error about rules. The caller must call Close.
func New(ctx context.Context, set *settings.Settings, deps Deps, opts Options) (*Session, error) {
	if err := CheckPreset(opts.Preset); err != nil {
		return nil, err
	}
	mask := &masker{set: set, environ: deps.Environ}
	recorded := recordingOptions(mask)
	var replayed []registry.Source
	if deps.Replay != nil {
		replayed = deps.Replay.Sources(recorded)
		set = replayedSettings(set, replayed)
	}
	r := newRun(set, deps, opts)
	r.mask, r.expander.Seen = mask, mask.add
	if opts.Shared {
		var err error
		if r.store, err = sharedStore(ctx, r); err != nil {
			return nil, err
		}
	}
	if !opts.Still && slices.ContainsFunc(set.Servers, func(s settings.Server) bool { return s.Command != "" && r.keepFor(s) <= 0 }) {
		process.Prepare()
	}
	var early sync.WaitGroup // work that needs only the settings, most of it in the kernel
	defer early.Wait()
	early.Go(func() {
		if len(set.Servers) > 0 {
			r.inside()
		}
		if !opts.Still && deps.Replay == nil {
			r.endOutdated(ctx)
		}
	})
	var err error
	if r.rules, err = compileRules(set, deps.Evaluator); err != nil {
		return nil, err
	}
	if opts.Earlier != nil {
		_ = opts.Earlier.Records.Flush() // what it remembers is used; its Close reports what fails
	}
	cached, audit := newListings(r), newRecorder(r)
	gate := newGate(r, audit)
	connections := &Connections{run: r, cached: cached, gate: gate, questions: &questions{run: r, audit: audit}, files: builtin.NewFiles(builtin.Options{Workspace: workspaceOf(set)}),
		links: map[place]*link{}, shared: map[*link]*mcpclient.Options{}, recordingOptions: recorded}
	calls := &Calls{gate: gate}
	scripts := &Scripts{run: r, calls: calls}
	sources := newSources(ctx, connections, calls.step, scripts, replayed)
	if err := r.rules.CheckExamples(ctx, sources.builtin, r.shell()); err != nil {
		return nil, err
	}
	options := registry.Options{Filters: slices.Concat(presetFilters(opts.Preset), filters(set, sources.apis)), Last: opts.Last, LastShaped: opts.LastShaped,
		Conflicts: set.Conflicts, MaxDescription: set.Limits.Description, Observe: cached.observe}
	if deps.Record != nil {
		connections.recordWith(recorded, sources, &options)
	}
	if deps.Replay != nil {
		options.Observe = nil // a recorded failure says nothing about the source of today
		gate.answers = &recordedAnswers{options: recorded, recorded: deps.Replay}
	}
	if changes := overrides.New(set, deps.Evaluator); changes != nil {
		options.Overrides = changes
	}
	options.Builtin, options.Project = builtin.Namesakes(), projectOf(set, sources.plugins)
	names := newServerNames(r, func() (*lock.Set, error) { return findLock(set, deps.Environ) })
	if set.View == nil {
		options.Names = names
	} else { // names are the program's own, and nothing else is registered
		options.Prefix = func(server string) string { return set.View.ToolPrefix(server) }
		sources.local, sources.plugins.Found = nil, nil
	}
	if opts.Locked && opts.Last == nil {
		locks, err := findLock(set, deps.Environ)
		if err != nil {
			hint := ""
			if !errors.Is(err, fs.ErrNotExist) {
				hint = lock.Anew
			}
			return nil, &InputError{Err: fmt.Errorf("--locked: %w", err), Hint: hint}
		}
		options.Last, options.LastShaped = locks.Filter(deps.Warn), locks.OverrideFilter(deps.Warn)
	}
	if opts.Listed != nil {
		options.Last = opts.Listed.before(options.Last)
	}
	loader := registry.NewLoader(options)
	f := &finder{run: r, names: names, cached: cached, sources: sources, loader: loader, renewer: renewer{r, sources, loader, cached.Records}}
	f.clients.newSources = sources.ofClients(connections)
	offers := &Offers{run: r, finder: f, gate: gate}
	calls.tools = &Tools{run: r, finder: f, offers: offers}
	scripts.offers, offers.scripts = offers, scripts
	return &Session{Settings: set, Expander: r.expander, Tools: calls.tools, Offers: offers, Calls: calls, Servers: sources.Servers, Connections: connections,
		Plugins: sources.plugins, Scripts: scripts, Tasks: &Tasks{r, sources.Servers, calls.tools, gate.runs}, OfferOwners: &OfferOwners{names: names}, Records: cached.Records, Store: r.store, run: r, cached: cached, loader: loader, gate: gate}, nil
}

// findLock reads the lock files that apply to a project.
func findLock(set *settings.Settings, environ []string) (*lock.Set, error) {
	return lock.Find(set.ProjectRoot, userLock(set, environ), set.TrustsLock())
}

// userLock returns the folder of the user's lock file; "" if it does not count.
func userLock(set *settings.Settings, environ []string) string {
	if set.Globals.NoUser {
		return ""
	}
	return settings.UserFolder(environ)
}

// Relist queries servers and APIs for their tools again, for registries that are loaded
// later. One that fails keeps its earlier tools and is reported in the error.
func (s *Session) Relist(ctx context.Context, sources ...registry.Source) error {
	err := s.loader.Refresh(ctx, sources...)
	for _, f := range s.Tools.finder.all() {
		f.mu.Lock()
		f.forget()
		f.mu.Unlock()
	}
	s.gate.forget()
	return err
}

// Close saves what has to be stored and stops every server and child. Errors of
// servers while they are being stopped are ignored.
func (s *Session) Close() {
	s.cached.Flush()
	s.Connections.linking.Lock()
	for l := range s.Connections.shared {
		s.loader.Release(l.source)
	}
	s.Connections.linking.Unlock()
	if err := s.loader.Close(); err != nil {
		s.run.deps.Log.Debug("closing", "err", err)
	}
	if err := s.Connections.files.Close(); err != nil {
		s.run.deps.Log.Debug("closing the files of calls", "err", err)
	}
	if err := s.run.confiner.Close(); err != nil {
		s.run.deps.Log.Debug("closing the workspace", "err", err)
	}
	if s.run.opened != nil {
		s.run.opened.Close()
	}
	if err := s.gate.audit.Close(); err != nil {
		s.run.deps.Log.Debug("closing the audit log", "err", err)
	}
}
