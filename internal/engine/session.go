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
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/engine/listing"
	"github.com/toolreg/toolreg/internal/engine/owner"
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/engine/quota"
	"github.com/toolreg/toolreg/internal/engine/record"
	"github.com/toolreg/toolreg/internal/engine/rules"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/overrides"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/recording"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/store"
)

// Deps are what a session needs from the program. Dir, Environ, Folders, Warn
// and Outcome are required; the others may be nil or zero.
type Deps struct {
	Version string
	Dir     string    // the working directory, absolute
	Environ []string  // of the process, "K=V"
	Start   time.Time // start of the run
	Folders *state.Folders
	Log     *slog.Logger // a nil Log discards messages

	// Warn reports a problem that does not stop a request. It may be called from any goroutine.
	Warn func(registry.Diagnostic)
	// Asker asks the person. A nil Asker means that nobody can be asked.
	Asker Asker
	// Describe returns a question as data, for approval.command and for later answers. If it is
	// nil, only Asker is asked.
	Describe func(exec.Question) exec.Prompt
	// Began is called with each call as it begins and may be nil. The function that it returns is
	// called at the end, with nil if the call goes on in another run.
	Began func(audit.Entry) (ended func(*audit.Entry))
	// Screen shows progress. A nil Screen shows nothing.
	Screen Screen
	// ServerLog returns the function that receives one server's log messages;
	// LogLevel is the lowest level that servers are asked to send.
	ServerLog func() func(mcpclient.LogMessage)
	LogLevel  string
	// Outcome returns the error code and exit code of an error, for the audit
	// log.
	Outcome func(context.Context, error) (code string, exit int)
	// Keeper is the command that manages background commands of tools; it receives the arguments of
	// shell.Keep. If it is empty, there are no background commands.
	Keeper []string
	// ServerKeeper is the command that runs KeepServer. If it is empty, no server is kept.
	ServerKeeper []string
	// Evaluator is the command that runs jq.Evaluate, for expressions of plugins and projects. If
	// it is empty, they are evaluated in this process, limited only in time.
	Evaluator []string
	// ScriptEngine is the command that runs script.Execute. If it is empty, scripts cannot be run.
	ScriptEngine []string
	// Record records the session; Replay replaces its sources. At most one is set.
	Record *recording.Recorder
	Replay *recording.Recording
}

// Options are the options of one run. The zero value has no restrictions.
type Options struct {
	Preset  string           // only the tools of these presets, with commas; "" stands for all tools
	Context []settings.Named // context values for this run
	Cache   cache.Mode       // how cached listings are used
	// Still starts nothing, not even a command reference in the settings. It requires
	// cache.Offline.
	Still  bool
	Counts bool              // also count prompts and resources of servers
	Uncut  bool              // do not shorten results
	Apps   bool              // the session serves clients that may show pages of tools, see [registry.Registry.Apps]
	Guard  bool              // guard the processes of servers, see [process.Spec]
	Kept   mcpclient.KeptUse // of servers with keep
	List   bool              // nothing is called: servers are stopped as soon as they have listed their tools
	Locked bool              // refuse tools that differ from toolreg.lock
	// Earlier is the session that this one is to replace, or nil. Servers whose settings are
	// unchanged continue in this one; see [Session.TakeOver].
	Earlier *Session
	// Shared says that other processes serve the same clients, and that they share the store of the
	// settings (serve.store), if there is one.
	Shared bool
	// ClientLogins says that all callers have tokens, which Shared and serve.oauth imply. Servers
	// with oauth.per: client are then reached with the login of the calling client, otherwise with
	// the person's.
	ClientLogins bool
	// Host is the source of functions that the program driving toolreg provides. Its tools are
	// registered first. It may be nil.
	Host registry.Source
	// Noticed are the diagnostics of reading the settings. [Tools.Diagnostics] returns them first.
	Noticed []registry.Diagnostic
	// Last is a filter that runs after all others, in place of Locked. It may be nil.
	Last       registry.Filter
	Listed     *Listed                                              // collects the tools that servers list; may be nil
	LastShaped func(t *registry.Tool, name string) *registry.Hidden // likewise, for overrides
}

// Session is one run over one set of sources. Its parts and methods are safe for concurrent use.
type Session struct {
	Settings    *settings.Settings // must not be changed
	Expander    *values.Expander   // of the settings
	Tools       *Tools
	Offers      *Offers
	Calls       *Calls
	Servers     *sources.Servers
	Connections *sources.Connections
	Logins      *sources.Logins
	Plugins     *sources.Plugins
	Scripts     *Scripts
	Tasks       *Tasks
	OfferOwners *owner.Offers
	Records     *cache.Store // what sources answered in earlier runs

	// Store is what processes that serve the same clients share, or nil; see [Options.Shared].
	Store *store.Store

	programs *programs.Set
	policies *policies
	audit    *record.Calls
	gate     *gate
	finder   *finder
	listed   *Listed
	earlier  *Session // that this one is to replace; nil if there is none

	mu     sync.Mutex
	users  int    // of Borrow
	unused func() // see WhenUnused
}

// New creates the sources of a run without starting them. The error is an
// *settings.InputError, or a *document.Error about rules. The caller must call Close.
func New(ctx context.Context, set *settings.Settings, deps Deps, opts Options) (*Session, error) {
	if err := CheckPreset(opts.Preset); err != nil {
		return nil, err
	}
	mask := record.NewMask(set, deps.Environ)
	if deps.Log != nil {
		deps.Log = slog.New(mask.Log(deps.Log.Handler()))
	}
	tape := record.NewTape(mask, deps.Record, deps.Replay)
	replayed := tape.Sources()
	if tape.Replays() {
		set = replayedSettings(set, replayed)
	}
	if opts.Still {
		opts.Cache = cache.Offline
	}
	reports := newReports(deps.Warn, deps.Log, deps.Screen, mask.Hide, opts.Noticed)
	kept := &sources.KeptServers{Settings: set, Folders: deps.Folders, Use: opts.Kept, Command: deps.ServerKeeper,
		Renew: opts.Cache == cache.Live || opts.Cache == cache.Renew}
	inside := sync.OnceValues(func() (string, bool) { return process.InsideServer(deps.Environ) })
	var early sync.WaitGroup // work that needs only the settings, most of it in the kernel
	defer early.Wait()
	if !opts.Still && slices.ContainsFunc(set.Servers,
		func(s settings.Server) bool { return s.Command != "" && kept.KeepFor(s) <= 0 }) {
		process.Prepare()
	}
	early.Go(func() {
		if len(set.Servers) > 0 {
			inside()
		}
		if !opts.Still && !tape.Replays() {
			kept.EndOutdated(ctx, reports.log)
		}
	})

	rules, err := rules.Compile(set, expand.NewEnviron(deps.Environ).Lookup, deps.Evaluator)
	if err != nil {
		return nil, err
	}
	programs := programs.New(ctx, programs.Set{Settings: set, Dir: deps.Dir, Environ: deps.Environ,
		Folders: deps.Folders, Warn: reports.add, Log: reports.log, Hide: mask.Hide}, opts.Still, mask.Add)
	var shared *store.Store
	var before *sources.Connections
	var plugins []sources.Plugin
	var counted *quota.Limits
	if earlier := opts.Earlier; earlier != nil {
		_ = earlier.Records.Flush() // what it remembers is used; its Close reports what fails
		counted, before, plugins = earlier.gate.limits, earlier.Connections, earlier.Plugins.Found
	}
	switch {
	case !opts.Shared:
	case opts.Earlier != nil: // a change of the settings does not replace the store
		shared = opts.Earlier.Store
	case !tape.Replays(): // what a replay stores is not for others
		if shared, err = sources.OpenStore(ctx, set.Serve, programs.Expander); err != nil {
			return nil, err
		}
	}

	// What a call passes through.
	facts := programs.Facts(opts.Context)
	outputs := outputs{programs: programs, facts: facts}
	logins := &sources.Logins{Programs: programs, Shared: shared,
		PerClient: opts.ClientLogins || opts.Shared && set.Serve.OAuth.Issuer.Value != ""}
	policies := &policies{rules: rules, programs: programs, clients: shared,
		credentials: sync.OnceValue(func() func(string) string {
			return programs.Confiner.Credentials(outputs.Folder)
		})}
	audit := record.NewCalls(record.Options{Settings: set, Folders: deps.Folders, Mask: mask,
		Warn: reports.add, Log: reports.log, Outcome: deps.Outcome, Began: deps.Began})
	runs := &toolRuns{outputs: outputs, logins: logins, uncut: opts.Uncut, renew: opts.Cache == cache.Renew,
		reports: reports}
	gate := &gate{programs: programs, policies: policies, runs: runs,
		limits: quota.New(set.CallLimits, shared, counted), asker: deps.Asker, describe: deps.Describe,
		audit: audit, tape: tape, reports: reports, executors: map[*registry.Registry]*exec.Executor{}}

	// Where tools come from.
	listings := listing.New(listing.Options{Settings: set, Environ: deps.Environ, Folders: deps.Folders,
		Expander: programs.Expander, Version: deps.Version, Mode: opts.Cache, Warn: reports.add, Log: reports.log,
		Still: opts.Still, Counts: opts.Counts, Lists: opts.List || opts.Counts})
	questions := &questions{asker: deps.Asker, programs: programs, audit: audit, tape: tape, reports: reports,
		gate: gate}
	common := commonOptions(programs, reports, deps, opts, mask)
	base := func(server settings.Server) mcpclient.Options {
		o := common
		o.Callbacks, o.Exchange = questions.callbacks(server), tape.Exchange(server.Name)
		if deps.ServerLog != nil {
			o.OnLog = deps.ServerLog()
		}
		return o
	}
	own := builtin.Options{Outputs: outputs,
		Fetch: builtin.FetchOptions{Version: deps.Version, Refresh: opts.Cache == cache.Renew}}
	own.Todo.Began, own.Shell.Keeper = deps.Start, deps.Keeper
	noticeWorkspace(set, opts.Preset, reports)
	sources, connections := sources.New(ctx, sources.Options{Programs: programs, Facts: facts, Logins: logins,
		Listings: listings, Kept: kept, Base: base, Notice: reports.notice, Earlier: plugins, Tools: own,
		Secrets:   func(api string) []string { return mask.Secrets(table.APIsKey, api) },
		Evaluator: deps.Evaluator, Host: opts.Host, Replayed: replayed,
		OnlyLocal: onlyLocal(opts.Preset), Inside: inside}, before)
	if err := rules.CheckExamples(ctx, sources.Builtin, programs.Shell()); err != nil {
		return nil, err
	}

	// How they are registered, found and offered.
	options, err := registryOptions(programs, opts, sources, deps.Evaluator)
	if err != nil {
		return nil, err
	}
	names := owner.NewNames(owner.Options{Settings: set, Folders: deps.Folders, Warn: reports.add, Log: reports.log,
		Locks: func() (*lock.Set, error) { return findLock(set, deps.Environ) }, Relock: opts.Last != nil,
		Store: opts.Cache != cache.Offline})
	if set.View == nil {
		options.Names = names
	}
	options.Begins = reports.shows
	// A replay does not use the entries of servers, and a recorded failure says nothing about the
	// source today.
	switch {
	case tape.Records():
		deps.Record.Order(sources.All())
		options.Observe, options.Found = listings.Observe, tape.Found(sourceFilters(set, sources.APIs()))
	case !tape.Replays():
		options.Observe = listings.Observe
	}
	loader := registry.NewLoader(options)
	finding := &finding{set: set, rules: rules, names: names, listings: listings, loader: loader, reports: reports,
		announcer: &announcer{programs: programs, reports: reports, still: opts.Still},
		preset:    opts.Preset, locked: opts.Locked, recording: tape.Records(), offline: opts.Cache == cache.Offline}
	finder := &finder{finding: finding, sources: sources, clients: clients{
		newSources: sources.ForClients(connections), finders: map[string]*finder{}}}
	finder.forget()
	offers := &Offers{finder: finder, policies: policies, programs: programs}
	scripts := &Scripts{gate: gate, finder: finder, offers: offers, folders: deps.Folders, engine: deps.ScriptEngine}
	tools := &Tools{finder: finder, offers: offers, scripts: scripts}
	return &Session{
		Settings: set, Expander: programs.Expander, Tools: tools, Offers: offers,
		Calls:   &Calls{gate: gate, tools: tools, scripts: scripts},
		Scripts: scripts, Servers: sources.Servers, Connections: connections, Logins: logins,
		Plugins:     sources.Plugins,
		Tasks:       &Tasks{finder: finder, servers: sources.Servers, kept: kept, programs: programs, runs: runs},
		OfferOwners: owner.NewOffers(names), Records: listings.Records, Store: shared,
		programs: programs, policies: policies, audit: audit, gate: gate, finder: finder,
		listed: opts.Listed, earlier: opts.Earlier,
	}, nil
}

// registryOptions returns the options of the registry that do not depend on other parts of the
// session.
func registryOptions(p *programs.Set, opts Options,
	sources *sources.Set, evaluator []string) (registry.Options, error) {
	set := p.Settings
	options := registry.Options{Filters: filters(set, sources.APIs()), Outside: outsidePreset(opts.Preset),
		Last: opts.Last, LastShaped: opts.LastShaped, Conflicts: set.Conflicts, MaxDescription: set.Limits.Description,
		Builtin: builtin.Namesakes(), Project: projectOf(set, sources.Plugins)}
	if changes := overrides.New(set, evaluator); changes != nil {
		options.Overrides = changes
	}
	if set.View != nil { // names are the program's own, and nothing else is registered
		options.Prefix = func(server string) string { return set.View.ToolPrefix(server) }
	}
	if opts.Locked && opts.Last == nil {
		locks, err := findLock(set, p.Environ)
		if err != nil {
			return options, &settings.InputError{Err: fmt.Errorf("--locked: %w", err), Hint: registry.HintOf(err)}
		}
		options.Last, options.LastShaped = locks.Filter(p.Warn), locks.OverrideFilter(p.Warn)
	}
	if opts.Listed != nil {
		options.Last = opts.Listed.before(options.Last)
	}
	return options, nil
}

// findLock reads the lock files that apply to a project.
func findLock(set *settings.Settings, environ []string) (*lock.Set, error) {
	user := ""
	if !set.Globals.NoUser {
		user = settings.UserFolder(environ)
	}
	return lock.Find(set.ProjectRoot, user, set.TrustsLock())
}

// HasClients reports whether some servers have a login for each client, so that clients are offered
// different tools.
func (s *Session) HasClients() bool { return s.finder.clients.newSources != nil }

// ServersFor returns the servers and APIs that the caller of ctx can use, see
// [Options.ClientLogins].
func (s *Session) ServersFor(ctx context.Context) *sources.Servers {
	return s.finder.forCaller(ctx).sources.Servers
}

// Forget ends the sessions with servers that use a client's logins, and forgets what they listed.
// Later requests begin anew.
func (s *Session) Forget(client string) {
	all := &s.finder.clients
	all.mu.Lock()
	own := all.finders[client]
	delete(all.finders, client)
	all.mu.Unlock()
	if own == nil {
		return
	}
	s.Connections.Drop(own.sources.Servers, client, s.finder.loader.Release)
	s.gate.forget()
}

// Relist queries servers and APIs for their tools again, for registries that are loaded
// later. One that fails keeps its earlier tools and is reported in the error.
func (s *Session) Relist(ctx context.Context, sources ...registry.Source) error {
	err := s.finder.loader.Refresh(ctx, sources...)
	for _, f := range s.finder.all() {
		f.mu.Lock()
		f.forget()
		f.mu.Unlock()
	}
	s.gate.forget()
	return err
}

// TakeOver makes this session the owner of the servers that it shares with Options.Earlier. Before,
// they end with that session; afterwards, with this one. Calls that still wait in that session are
// denied if this one denies them.
func (s *Session) TakeOver() {
	if s.earlier == nil {
		return
	}
	s.Connections.TakeOver(s.earlier.finder.loader.Release)
	s.earlier.policies.next.Store(s.policies)
	s.earlier = nil
}

// Borrow counts a user of the session until done is called.
func (s *Session) Borrow() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.users--; s.users == 0 && s.unused != nil {
			s.unused()
			s.unused = nil
		}
	}
}

// WhenUnused calls f once the session has no users. f must not wait.
func (s *Session) WhenUnused(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		f()
	} else {
		s.unused = f
	}
}

// Close saves what has to be stored and stops every server and child. Errors of
// servers while they are being stopped are ignored.
func (s *Session) Close() {
	log := s.programs.Log
	s.finder.listings.Flush()
	s.Connections.Release(s.finder.loader.Release)
	if err := s.finder.loader.Close(); err != nil {
		log.Debug("closing", "err", err)
	}
	if err := s.Connections.Close(); err != nil {
		log.Debug("closing the files of calls", "err", err)
	}
	if err := s.programs.Confiner.Close(); err != nil {
		log.Debug("closing the workspace", "err", err)
	}
	if err := s.audit.Close(); err != nil {
		log.Debug("closing the audit log", "err", err)
	}
}

func commonOptions(p *programs.Set, reports *reports, deps Deps, opts Options, mask *record.Mask) mcpclient.Options {
	limits := p.Settings.Limits
	o := mcpclient.Options{
		ProjectRoot: p.Settings.ProjectRoot, Workspace: p.Workspace(), Environ: process.ChildEnviron(p.Environ),
		Version: deps.Version, Expand: p.Expander.Server, Hide: mask.Hide, Logger: p.Log, OnState: reports.serverState,
		Counts: opts.Counts, ListOnly: opts.List, Apps: opts.Apps,
		Guard: opts.Guard, LogLevel: deps.LogLevel,
		Limits: mcpclient.Limits{
			Frame: limits.Frame, Result: limits.Result, Tools: limits.Tools, Pages: limits.Pages,
			Schema: limits.Schema, Samples: p.Settings.Sampling.Requests,
		},
	}
	if p.Settings.Globals.ConnectSet {
		o.ConnectTimeout = p.Settings.Globals.ConnectTimeout
	}
	return o
}
