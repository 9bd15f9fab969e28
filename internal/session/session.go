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
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// Deps are what a session gets from the program around it. Dir, Environ,
// Folders, Warn and Outcome are required; the others may be nil or zero.
type Deps struct {
	Version string
	Dir     string    // the working directory, absolute
	Environ []string  // of the process, "K=V"
	Start   time.Time // when the run began
	Folders *Folders
	Log     *slog.Logger // nil: silent

	// Warn is told of what goes wrong beside a request. It may be called from
	// any goroutine.
	Warn func(registry.Diagnostic)
	// Asker asks the person. nil: nobody is there.
	Asker Asker
	// Screen shows what goes on. nil: nothing is shown.
	Screen Screen
	// ServerLog returns what is told of one server's log messages; LogLevel is
	// the least level that servers are asked for.
	ServerLog func() func(mcpclient.LogMessage)
	LogLevel  string
	// Outcome names an error with the code and the exit code that the program
	// gives for it; the audit log has both.
	Outcome func(context.Context, error) (code string, exit int)
	// Keeper is the command that looks after what tools leave running in the
	// background; it gets arguments of builtin.Keep. nil: there is no background.
	Keeper []string
}

// Asker asks the person at the terminal.
type Asker interface {
	// Confirmer returns what asks about calls, nil where nobody is there.
	Confirmer() exec.Confirmer
	// Elicit puts the question of a server. Where nobody is there to be asked the
	// error is a *NobodyError.
	Elicit(context.Context, ask.Elicitation) (ask.Answer, error)
}

// NobodyError tells why a question could not be put to anybody.
type NobodyError struct{ Reason string }

func (e *NobodyError) Error() string { return e.Reason }

// Screen shows the work of a session while it goes on.
type Screen interface {
	// Watch shows the state of servers until done is called.
	Watch() (done func())
	// ServerState is told of each step of a server, from any goroutine.
	ServerState(server string, state mcpclient.State)
	// Pause takes what is shown away until resume is called.
	Pause() (resume func())
}

// Options are what one run wants. The zero value is a run with nothing special.
type Options struct {
	Preset  string     // only the tools of these presets; "" = all
	Context []Fact     // facts for plugins that were given for this run
	Cache   cache.Mode // what to make of listings that are kept
	Counts  bool       // prompts and resources of servers are counted too
	Uncut   bool       // results are not cut
	Locked  bool       // refuse tools that are not in toolreg.lock as they are now
	// Noticed is what was noticed before, while the settings were read; it opens
	// what [Session.Diagnostics] returns.
	Noticed []registry.Diagnostic
	// Last is a filter after all others, in place of Locked. nil: none.
	Last registry.Filter
}

// Session is one run over one set of sources. Its methods are safe for
// concurrent use unless they say otherwise.
type Session struct {
	set      *settings.Settings
	deps     Deps
	opts     Options
	expander *settings.Expander
	env      []string // of the commands that tools run

	sources *sources
	cached  *listings // what earlier runs left
	loader  *registry.Loader
	audit   auditLog

	finding   sync.Mutex // guards found and renewing
	found     found
	announced atomic.Bool // the hooks know the registry

	running   sync.Mutex // guards executors
	executors map[*registry.Registry]*exec.Executor

	noticing sync.Mutex // guards notices
	notices  []registry.Diagnostic
}

// InputError is a mistake in what the person gave: a flag, a variable, an entry
// of the settings that only the whole shows.
type InputError struct {
	Err  error
	Hint string // what to do; may be empty
}

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// New makes the sources of a run and starts none of them. The error is an
// *InputError or a *settings.Error. Whoever made the session closes it.
func New(ctx context.Context, set *settings.Settings, deps Deps, opts Options) (*Session, error) {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Screen == nil {
		deps.Screen = blank{}
	}
	if err := CheckPreset(opts.Preset); err != nil {
		return nil, err
	}
	s := &Session{set: set, deps: deps, opts: opts, expander: settings.NewExpander(set.ProjectRoot, deps.Environ),
		notices:   slices.Clone(opts.Noticed),
		executors: map[*registry.Registry]*exec.Executor{}}
	s.audit.folders, s.audit.set = deps.Folders, set.Audit
	s.cached = s.newListings()
	composites, err := s.composites(ctx)
	if err != nil {
		return nil, err
	}
	s.sources = s.newSources(ctx, composites)
	last, err := s.lastFilters()
	if err != nil {
		return nil, err
	}
	s.loader = registry.NewLoader(registry.Options{Filters: slices.Concat(presetFilters(opts.Preset), filters(set), last),
		Conflicts: set.Conflicts, Observe: s.observeSource})
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

// Diagnostics is everything that was noticed until now: by the session itself,
// then while loading reg.
func (s *Session) Diagnostics(reg *registry.Registry) []registry.Diagnostic {
	s.noticing.Lock()
	defer s.noticing.Unlock()
	return slices.Concat(s.notices, reg.Diagnostics())
}

func (s *Session) notice(d registry.Diagnostic) {
	s.noticing.Lock()
	defer s.noticing.Unlock()
	s.notices = append(s.notices, d)
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
	set, err := s.Hooks(ctx)
	if err != nil || set == nil || !s.announced.CompareAndSwap(false, true) {
		return err
	}
	if err := errors.Join(set.Registered(ctx, reg.Tools()), set.Noticed(ctx, s.Diagnostics(reg))); err != nil {
		s.warn("hook_failed", "", err.Error(), "")
	}
	return nil
}

// warn tells of something that does not stop the run. source may be empty.
func (s *Session) warn(code, source, message, hint string) {
	s.deps.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: code, Source: source, Message: message, Hint: hint})
}

// blank is a screen that shows nothing.
type blank struct{}

func (blank) Watch() func()                       { return func() {} }
func (blank) ServerState(string, mcpclient.State) {}
func (blank) Pause() func()                       { return func() {} }
