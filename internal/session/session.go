// Package session is the engine: settings go in, one registry and calls come
// out. It makes the sources of a run, starts those that a request needs, finds
// tools by name, and puts every call through the one gate of package exec with
// everything around it that the settings ask for (spec sections 5, 6 and 8).
//
// It knows neither flags, terminals nor exit codes: what it needs of them comes
// in as [Deps], and what went wrong goes out as typed errors and diagnostics.
// The commands of internal/cli are one front of it.
package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// Session is one run over one set of sources. Its methods are safe for
// concurrent use.
type Session struct {
	*run
	sources   *sources
	cached    *listings // what earlier runs left
	loader    *registry.Loader
	finder    *finder
	gate      *gate
	audit     *auditor
	questions *questions
	announced atomic.Bool // the hooks know the registry

	mu      sync.Mutex // guards notices
	notices []registry.Diagnostic
}

// New makes the sources of a run and starts none of them. The error is an
// *InputError. Whoever made the session closes it.
func New(ctx context.Context, set *settings.Settings, deps Deps, opts Options) (*Session, error) {
	if err := CheckPreset(opts.Preset); err != nil {
		return nil, err
	}
	r := newRun(set, deps, opts)
	s := &Session{run: r, cached: newListings(r), audit: &auditor{run: r}, notices: slices.Clone(opts.Noticed)}
	s.questions, s.gate = &questions{run: r, audit: s.audit}, newGate(r, s.audit)
	s.sources = s.newSources(ctx, s.composites(ctx))
	last, err := s.lastFilters()
	if err != nil {
		return nil, err
	}
	s.loader = registry.NewLoader(registry.Options{Filters: slices.Concat(presetFilters(opts.Preset), filters(set), last),
		Conflicts: set.Conflicts, MaxDescription: set.Limits.Description, Observe: s.observeSource})
	s.finder = &finder{run: r, cached: s.cached, sources: s.sources, loader: s.loader, renewer: renewer{r, s.sources, s.loader, s.cached.sources}}
	return s, nil
}

// lastFilters are what comes after all filters of the settings.
func (s *Session) lastFilters() ([]registry.Filter, error) {
	if s.opts.Last != nil {
		return []registry.Filter{s.opts.Last}, nil
	}
	if !s.opts.Locked {
		return nil, nil
	}
	file, err := lock.Read(s.set.ProjectRoot)
	if err != nil {
		return nil, &InputError{Err: fmt.Errorf("--locked: %w", err)}
	}
	return []registry.Filter{file.Filter(s.deps.Warn)}, nil
}

// Settings are those of the session. They are not to be changed.
func (s *Session) Settings() *settings.Settings { return s.set }

// Expander expands what the settings hold unexpanded.
func (s *Session) Expander() *settings.Expander { return s.expander }

// ToolEnviron is the environment of the commands that tools run.
func (s *Session) ToolEnviron() []string { return s.env }

// Plugins are all plugins that were found, those that do not count too, in the
// order in which they take names.
func (s *Session) Plugins() []Plugin { return s.sources.plugins }

// Diagnostics is everything that was noticed until now: by the session itself,
// then while loading reg. What both say of a source stands once.
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

// Close writes what is to be remembered and ends every server and child. What
// is wrong with a server that is being closed concerns nobody.
func (s *Session) Close() {
	s.cached.flush()
	if err := s.loader.Close(); err != nil {
		s.deps.Log.Debug("closing", "err", err)
	}
	if err := s.audit.close(); err != nil {
		s.deps.Log.Debug("closing the audit log", "err", err)
	}
}

// observeSource logs each source as it finishes.
func (s *Session) observeSource(r registry.SourceReport) {
	if _, cached := s.cached.sources.Served(r.Name); cached {
		s.deps.Log.Info("source", "name", r.Name, "state", "cached", "tools", r.Tools, "age", s.cached.sources.Age(r.Name))
		return
	}
	s.deps.Log.Info("source", "name", r.Name, "state", string(r.State), "tools", r.Tools, "duration", r.Duration, "err", r.Err)
}

// announce tells the hooks, once, which tools there are and what was noticed.
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
