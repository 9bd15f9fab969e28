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
	"sync/atomic"

	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/overrides"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
)

// Session is one run over one set of sources. Its methods are safe for
// concurrent use.
type Session struct {
	*run
	sources   *sources
	cached    *listingStore // caches of earlier runs
	loader    *registry.Loader
	finder    *finder
	gate      *gate
	audit     *callRecorder
	questions *questions
	announced atomic.Bool // whether onRegister and onDiagnostic were called

	mu      sync.Mutex // guards notices
	notices []registry.Diagnostic
}

// New creates the sources of a run without starting them. The error is an
// *InputError, or a *settings.Error about rules. The caller must call Close.
func New(ctx context.Context, set *settings.Settings, deps Deps, opts Options) (*Session, error) {
	if err := CheckPreset(opts.Preset); err != nil {
		return nil, err
	}
	if !opts.Still && slices.ContainsFunc(set.Servers, func(s settings.Server) bool { return s.Command != "" }) {
		process.Prepare()
	}
	r := newRun(set, deps, opts)
	var err error
	if r.rules, err = compileRules(set, deps.Evaluator); err != nil {
		return nil, err
	}
	s := &Session{run: r, cached: newListings(listingOptions{Settings: set, Expander: r.expander, Environ: deps.Environ, Folders: deps.Folders, Version: deps.Version, Mode: r.opts.Cache, Counts: opts.Counts, Log: r.deps.Log, Warn: deps.Warn}), notices: slices.Clone(opts.Noticed)}
	s.audit = newRecorder(recorderOptions{Settings: set, Folders: deps.Folders, Environ: deps.Environ, Outcome: deps.Outcome, Warn: deps.Warn, Log: r.deps.Log})
	s.questions, s.gate = &questions{run: r, audit: s.audit}, newGate(r, s.audit)
	s.sources = s.newSources(ctx, s.composites(ctx))
	if err := r.rules.CheckExamples(ctx, s.sources.local[0], r.shell()); err != nil {
		return nil, err
	}
	options := registry.Options{Filters: slices.Concat(presetFilters(opts.Preset), filters(set)), Last: opts.Last, LastShaped: opts.LastShaped,
		Conflicts: set.Conflicts, MaxDescription: set.Limits.Description, Observe: s.observeSource}
	if changes := overrides.New(set, deps.Evaluator); changes != nil {
		options.Overrides = changes
	}
	if opts.Locked && opts.Last == nil {
		file, err := lock.Read(set.ProjectRoot)
		if err != nil {
			hint := ""
			if !errors.Is(err, fs.ErrNotExist) {
				hint = lock.Anew
			}
			return nil, &InputError{Err: fmt.Errorf("--locked: %w", err), Hint: hint}
		}
		options.Last, options.LastShaped = file.Filter(deps.Warn), file.OverrideFilter(deps.Warn)
	}
	s.loader = registry.NewLoader(options)
	s.finder = &finder{run: r, cached: s.cached, sources: s.sources, loader: s.loader, renewer: renewer{r, s.sources, s.loader, s.cached.Records}}
	return s, nil
}

// Settings returns the settings of the session, which must not be changed.
func (s *Session) Settings() *settings.Settings { return s.set }

// Expander returns the expander for the session's settings.
func (s *Session) Expander() *values.Expander { return s.expander }

// ToolEnviron returns the environment of the commands that tools run.
func (s *Session) ToolEnviron() []string { return s.env }

// Plugins returns all plugins that were found, including disabled ones, in the
// order in which they claim names.
func (s *Session) Plugins() []Plugin { return s.sources.plugins }

// PluginFolders returns the folders in which plugins were looked for, including those that
// do not exist.
func (s *Session) PluginFolders() []string { return s.sources.pluginFolders }

// Diagnostics returns all diagnostics so far: those of the session, then those
// of loading reg. If both report the same, it appears once.
func (s *Session) Diagnostics(reg *registry.Registry) []registry.Diagnostic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(slices.Clone(s.notices), slices.DeleteFunc(reg.Diagnostics(), func(d registry.Diagnostic) bool {
		return d.Code == settings.CodeSourceFailed && slices.Contains(s.notices, d)
	})...)
}

func (s *Session) notice(d registry.Diagnostic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.notices, d) {
		s.notices = append(s.notices, d)
	}
}

// Close saves what has to be stored and stops every server and child. Errors of
// servers while they are being stopped are ignored.
func (s *Session) Close() {
	s.cached.Flush()
	if err := s.loader.Close(); err != nil {
		s.deps.Log.Debug("closing", "err", err)
	}
	if err := s.confiner.Close(); err != nil {
		s.deps.Log.Debug("closing the workspace", "err", err)
	}
	if err := s.audit.Close(); err != nil {
		s.deps.Log.Debug("closing the audit log", "err", err)
	}
}

// observeSource logs each source as it finishes.
func (s *Session) observeSource(r registry.SourceReport) {
	if _, cached := s.cached.Records.Served(r.Name); cached {
		s.deps.Log.Info("source", "name", r.Name, "state", "cached", "tools", r.Tools, "age", s.cached.Records.Age(r.Name))
		return
	}
	s.deps.Log.Info("source", "name", r.Name, "state", string(r.State), "tools", r.Tools, "duration", r.Duration, "err", r.Err)
}

// announce calls the hooks onRegister and onDiagnostic once.
func (s *Session) announce(ctx context.Context, reg *registry.Registry) error {
	if s.opts.Still {
		return nil
	}
	set, err := s.gate.hooks(ctx)
	if err != nil || set == nil || !s.announced.CompareAndSwap(false, true) {
		return err
	}
	if err := errors.Join(set.Registered(ctx, reg.Tools()), set.Noticed(ctx, s.Diagnostics(reg))); err != nil {
		s.warn("hook_failed", "", err.Error(), "")
	}
	return nil
}
