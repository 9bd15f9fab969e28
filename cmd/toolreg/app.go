package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/declare"
	"github.com/toolreg/toolreg/internal/imports"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/picture"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/terminal"
)

// app is what the commands share. Everything costly is made on first use, so
// that a command pays for what it needs alone.
type app struct {
	streams
	environ []string
	began   time.Time
	flags   *pflag.FlagSet // the global ones
	globals settings.Globals
	log     *slog.Logger
	jq      *jqFilter // nil without --jq

	dir          string // working directory
	stateAt      string // "" = not known
	store        *state.Dir
	set          *settings.Settings
	sources      *sources
	loader       *registry.Loader
	status       atomic.Pointer[terminal.Status] // live lines, nil while there are none
	told         map[string]bool                 // diagnostics already printed
	telling      sync.Mutex                      // guards told
	early        []registry.Diagnostic           // of the settings
	thorough     bool                            // what is only good to know is told too
	reports      bool                            // the result itself holds the diagnostics
	whole        bool                            // results are not cut
	images       picture.Protocol                // that images are shown by
	asksAll      bool                            // what is kept of sources does not do
	renewing     sync.Mutex                      // sources are asked again once
	audit        *audit.Log                      // nil until something is added
	logging      sync.Mutex                      // guards audit
	patience     patience                        // for files that may never end
	announced    atomic.Bool                     // the hooks know the registry
	counts       bool                            // prompts and resources are to be counted
	contextFlags []contextPair                   // --context
	preset       string                          // "" = none
	recorder     *lock.Recorder                  // of the command lock, else nil
	command      string                          // that runs, such as "toolreg list"
	asking       sync.Mutex                      // one question at a time, of policy and of servers
	screen       sync.Mutex                      // guards questions and held, and notes on stderr
	questions    int                             // that stand on the screen
	held         []byte                          // notes for after them
	ends         []func()                        // what close calls
	ending       sync.Mutex                      // guards ends
}

func newApp(s streams, environ []string) *app {
	return &app{streams: s, environ: environ, began: time.Now(), log: slog.New(slog.DiscardHandler), told: map[string]bool{}}
}

// prepare reads the global flags and their variables; no file is opened.
func (a *app) prepare(cmd *cobra.Command) error {
	a.flags, a.command = cmd.Root().PersistentFlags(), cmd.CommandPath()
	g, err := settings.ResolveGlobals(a.flags)
	if err != nil {
		return err
	}
	a.globals = g
	if g.Refresh && g.Cached {
		return &usageError{err: errors.New("--refresh and --cached exclude each other"), hint: "TOOLREG_REFRESH and TOOLREG_CACHED count like the flags"}
	}
	if expression, err := a.flags.GetString("jq"); err == nil && expression != "" {
		a.globals.JSON = true // the filter is over the JSON output
		if a.jq, err = newJQ(expression); err != nil {
			return err
		}
	}
	facts, err := a.flags.GetStringArray("context")
	if err == nil {
		a.contextFlags, err = readContext(facts, a.environ)
	}
	if err != nil {
		return err
	}
	if g.Verbose {
		a.log = slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return nil
}

// stateDir opens the state directory once. Without one the program runs on and
// remembers nothing; the diagnostic says so where it matters.
func (a *app) stateDir() (*state.Dir, error) {
	if a.store != nil {
		return a.store, nil
	}
	path, err := state.DefaultDir(a.environ)
	if err != nil {
		return nil, err
	}
	a.stateAt = path
	d, err := state.OpenDir(path)
	if err != nil {
		return nil, err
	}
	a.store = d
	return d, nil
}

// settings loads the settings once and prints what was noticed.
func (a *app) settings(ctx context.Context) (*settings.Settings, error) {
	if a.set != nil {
		return a.set, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w; change to a folder that is there", err)
	}
	a.dir = dir
	s, diags, err := settings.Load(a.settingsOptions())
	if err != nil {
		a.diagnose(diags) // an unknown key may be behind the mistake
		return nil, err
	}
	if s, diags, err = a.offerTrust(ctx, s, diags); err != nil {
		return nil, err
	}
	a.set, a.early = s, diags
	if !a.reports {
		a.diagnose(diags)
	}
	return s, nil
}

func (a *app) settingsOptions() settings.Options {
	o := settings.Options{
		Dir: a.dir, Root: a.globals.Root, Files: a.globals.Files,
		NoProject: a.globals.NoProject, NoUser: a.globals.NoUser, TrustProject: a.globals.TrustProject,
		Environ: a.environ, Flags: a.flags, Import: imports.Programs{},
	}
	if store, err := a.trustStore(); err == nil {
		o.Trust = store
	} else {
		a.log.Info("no state directory", "err", err)
	}
	return o
}

// load runs the sources and returns the registry of what they gave.
func (a *app) load(ctx context.Context, from []registry.Source, partial bool) *registry.Registry {
	done := a.watch()
	defer done()
	return a.loader.Load(ctx, from, partial)
}

// noticed is everything that was noticed until now, for results that hold it.
func (a *app) noticed(reg *registry.Registry) []registry.Diagnostic {
	return orEmpty(slices.Concat(a.early, reg.Diagnostics()))
}

// setup loads the settings and makes the sources without running any.
func (a *app) setup(ctx context.Context) error {
	s, err := a.settings(ctx)
	if err != nil || a.sources != nil {
		return err
	}
	if err := a.checkPreset(); err != nil {
		return err
	}
	composites, err := a.composites(ctx, s)
	if err != nil {
		return err
	}
	a.sources = newSources(ctx, a, s, composites)
	a.sources.narrow(a.preset)
	last, err := a.lockFilters(s)
	if err != nil {
		return err
	}
	a.loader = registry.NewLoader(registry.Options{Filters: slices.Concat(a.presetFilters(), filters(s), last), Conflicts: s.Conflicts, Observe: a.observe})
	return nil
}

// observe logs each source as it finishes.
func (a *app) observe(r registry.SourceReport) {
	if age, kept := a.sources.age(r.Name); kept {
		a.log.Info("source", "name", r.Name, "state", "cached", "tools", r.Tools, "age", age)
		return
	}
	a.log.Info("source", "name", r.Name, "state", string(r.State), "tools", r.Tools, "duration", r.Duration, "err", r.Err)
}

// all loads the whole registry and prints what was noticed.
func (a *app) all(ctx context.Context) (*registry.Registry, error) {
	if err := a.setup(ctx); err != nil {
		return nil, err
	}
	reg := a.load(ctx, a.sources.all(), false)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := a.announce(ctx, reg); err != nil {
		return nil, err
	}
	return reg, a.checkComposites(reg)
}

// find returns a tool by name, starting no server that the name rules out:
// built-in and discovered names start none, server__tool starts that server
// alone, any other name starts all (spec section 6.4), those apart that are in
// the cache.
func (a *app) find(ctx context.Context, name string) (*registry.Registry, *registry.Tool, error) {
	return a.findFor(ctx, name, false)
}

// findToCall is find for a tool that is to be called: its definition is what its
// server has now, whatever is in the cache.
func (a *app) findToCall(ctx context.Context, name string) (*registry.Registry, *registry.Tool, error) {
	return a.findFor(ctx, name, true)
}

func (a *app) findFor(ctx context.Context, name string, toCall bool) (*registry.Registry, *registry.Tool, error) {
	if err := a.setup(ctx); err != nil {
		return nil, nil, err
	}
	reg, t, err := a.search(ctx, name)
	for a.renewFor(ctx, reg, t, err, toCall) {
		reg, t, err = a.search(ctx, name)
	}
	return a.found(ctx, reg, t, err)
}

func (a *app) search(ctx context.Context, name string) (*registry.Registry, *registry.Tool, error) {
	local, servers := a.sources.local, a.sources.servers
	one := a.sources.serverOf(name)
	if few := a.sources.withoutPlugins(name); few != nil {
		reg := a.load(ctx, few, true)
		if t, err := reg.Lookup(name); err == nil {
			return reg, t, nil
		}
	}
	if one == nil {
		reg := a.load(ctx, local, true)
		if t, err := lookup(reg, name); err == nil || len(servers) == 0 {
			return reg, t, err
		}
	} else if len(servers) > 1 {
		reg := a.load(ctx, append(local[:len(local):len(local)], one), true)
		if t, err := reg.Lookup(name); err == nil || errors.Is(serverError(reg, one), registry.ErrSourceFailed) {
			return reg, t, cmp.Or(serverError(reg, one), err)
		}
	}
	reg := a.load(ctx, a.sources.all(), false)
	t, err := lookup(reg, name)
	if err != nil && one != nil {
		err = cmp.Or(serverError(reg, one), err)
	}
	return reg, t, err
}

// found prints what was noticed on the way to a tool.
func (a *app) found(ctx context.Context, reg *registry.Registry, t *registry.Tool, err error) (*registry.Registry, *registry.Tool, error) {
	if cause := context.Cause(ctx); cause != nil {
		return nil, nil, cause
	}
	if !a.reports {
		// The error says it, and is printed too.
		a.diagnose(slices.DeleteFunc(slices.Clone(reg.Diagnostics()), func(d registry.Diagnostic) bool {
			return d.Code == "source_failed" && err != nil && err.Error() == d.Message
		}))
	}
	if announceErr := a.announce(ctx, reg); announceErr != nil {
		return nil, nil, announceErr
	}
	if err == nil {
		return reg, t, nil
	}
	if e, ok := errors.AsType[*registry.NotFoundError](err); ok && e.Hidden == nil {
		e.Hidden = a.hidden(reg, e.Name)
	}
	return reg, nil, blame(reg, err)
}

// blame makes a missing tool the failure of a source where one failed that
// could have given it.
func blame(reg *registry.Registry, err error) error {
	failed := func(r registry.SourceReport) bool { return r.State == registry.StateFailed }
	if errors.Is(err, registry.ErrSourceFailed) || !slices.ContainsFunc(reg.Reports(), failed) {
		return err
	}
	return fmt.Errorf("%w: %w", registry.ErrSourceFailed, err)
}

// serverError returns why a server gave no tools, nil when it did.
func serverError(reg *registry.Registry, s *mcpclient.Source) error {
	for _, r := range reg.Reports() {
		if r.Name == s.Name() && r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// close ends every session and child. What is wrong with a server that is
// being closed concerns nobody.
func (a *app) close() error {
	a.ending.Lock()
	defer a.ending.Unlock()
	for _, end := range a.ends {
		end()
	}
	defer a.closeAudit()
	if a.loader == nil {
		return nil
	}
	a.sources.memory.flush()
	if err := a.loader.Close(); err != nil {
		a.log.Debug("closing", "err", err)
	}
	return nil
}

// atEnd has end called when the run is over.
func (a *app) atEnd(end func()) {
	a.ending.Lock()
	defer a.ending.Unlock()
	a.ends = append(a.ends, end)
}

// readFile opens a file that the person named on the command line.
func (a *app) readFile(name string) ([]byte, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(a.dir, name)
	}
	return a.patience.read(func() ([]byte, error) { return os.ReadFile(name) })
}

// lookup finds a tool by its name, or by a name as a declaration has it.
func lookup(reg *registry.Registry, name string) (*registry.Tool, error) {
	t, err := reg.Lookup(name)
	if err == nil {
		return t, nil
	}
	if original, ok := declare.Original("", definitions(reg), name); ok {
		return reg.Lookup(original)
	}
	return nil, err
}

// definitions lists every tool as declarations have it, older versions too.
func definitions(reg *registry.Registry) []registry.Definition {
	tools := reg.Tools()
	out := make([]registry.Definition, 0, len(tools))
	for _, t := range tools {
		for _, v := range reg.Versions(t.Name) {
			out = append(out, definition(reg, v))
		}
	}
	return out
}

// definition is a tool's definition under the name that finds this very
// version.
func definition(reg *registry.Registry, t *registry.Tool) registry.Definition {
	d := t.Definition
	if newest, err := reg.Lookup(t.Name); err == nil && newest != t && t.Version != "" {
		d.Name = t.Name + "@" + t.Version
	}
	return d
}
