// Package cli has what the commands of toolreg share: streams, global flags,
// the settings and the session of a run, tables and JSON, questions, and the
// table of exit codes. [Program.Run] is one run of the program. Each command is
// a package below this one; cmd/toolreg lists them.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/agents"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/session"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
)

// Env is the environment of a command. Everything costly is created when first
// used, so that a command pays only for what it needs.
type Env struct {
	IO      *IO
	Person  *Person
	Version string
	Environ []string // of the process, "K=V"
	Argv    []string // the command line, without the program
	Dir     string   // the working directory; "" until the settings are read
	Globals settings.Globals
	Folders *state.Folders

	start    time.Time
	command  *cobra.Command // the running command
	sessions []*session.Session
	unhelped error // why a command's own help could not be shown
	read
}

// read is what a run has read once.
type read struct {
	loaded loaded
	piped  map[string][]byte // --settings files that can be read only once, by name
}

// loaded has the settings after they are read, with their diagnostics.
type loaded struct {
	set   *settings.Settings
	diags []registry.Diagnostic
}

func newEnv(version string, s Streams, environ []string) *Env {
	e := &Env{IO: newIO(s, environ), Version: version, Environ: environ, Folders: &state.Folders{Environ: environ}, start: time.Now()}
	e.IO.context = func() context.Context { return e.command.Context() }
	e.Person = &Person{io: e.IO}
	return e
}

// prepare reads the global flags and their variables without opening any file.
func (e *Env) prepare(cmd *cobra.Command) error {
	e.command = cmd
	g, err := settings.ResolveGlobals(e.globalFlags())
	if err != nil {
		return err
	}
	e.Globals = g
	e.IO.follow(g)
	e.Person.NonInteractive = g.NonInteractive
	if g.Refresh && g.Cached {
		return &UsageError{Err: errors.New("--refresh and --cached cannot be used together"), Hint: "TOOLREG_REFRESH and TOOLREG_CACHED act like the flags"}
	}
	if g.JQ != "" {
		name := "--jq"
		if !e.globalFlags().Changed("jq") {
			name = "TOOLREG_JQ"
		}
		if e.IO.JQ, err = newFilter(name, g.JQ); err != nil {
			return err
		}
	}
	if _, err := e.context(); err != nil {
		return err
	}
	e.IO.live()
	return nil
}

// globalFlags returns the flags that every command has.
func (e *Env) globalFlags() *pflag.FlagSet { return e.command.Root().PersistentFlags() }

// Getenv returns an environment variable; "" if it is not set.
func (e *Env) Getenv(name string) string {
	v, _ := expand.Find(e.Environ, name)
	return v
}

// Settings reads the settings once and prints their diagnostics. On a terminal
// the first run in a project may ask whether to trust it.
func (e *Env) Settings(ctx context.Context) (*settings.Settings, error) {
	set, diags, err := e.LoadSettings(ctx)
	e.IO.Diagnose(diags)
	return set, err
}

// LoadSettings is [Env.Settings] for results that include the diagnostics. With
// an error they are already printed.
func (e *Env) LoadSettings(ctx context.Context) (*settings.Settings, []registry.Diagnostic, error) {
	if e.loaded.set != nil {
		return e.loaded.set, e.loaded.diags, nil
	}
	options, err := e.SettingsOptions()
	if err != nil {
		return nil, nil, err
	}
	set, diags, err := settings.Load(options)
	if err != nil {
		e.IO.Diagnose(diags) // an unknown key may have caused the mistake
		return nil, nil, err
	}
	agreed, err := e.offerTrust(ctx, set.Project)
	if err != nil {
		return nil, nil, err
	}
	if agreed {
		if set, diags, err = settings.Load(options); err != nil {
			return nil, nil, err
		}
	}
	e.loaded = loaded{set, e.withNo(set.Project, diags)}
	return set, e.loaded.diags, nil
}

// ForgetSettings makes the next use read the settings again, since a file has
// changed.
func (e *Env) ForgetSettings() { e.loaded = loaded{} }

// SettingsOptions returns the options for reading settings. It determines the
// working directory.
func (e *Env) SettingsOptions() (settings.Options, error) {
	if e.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return settings.Options{}, fmt.Errorf("finding the working directory: %w; change to an existing folder", err)
		}
		e.Dir = dir
	}
	if err := e.readPiped(e.Globals.Files); err != nil {
		return settings.Options{}, err
	}
	o := settings.Options{
		Dir: e.Dir, Root: e.Globals.Root, Files: e.Globals.Files, Piped: e.piped,
		NoProject: e.Globals.NoProject, NoUser: e.Globals.NoUser, TrustProject: e.Globals.TrustProject,
		Environ: e.Environ, Flags: e.globalFlags(), Import: agents.Importer{},
	}
	if store, err := e.TrustStore(); err == nil {
		o.Trust = store
	} else {
		e.IO.Log.Info("no state directory", "err", err)
	}
	return o, nil
}

// TrustStore returns the store of trust grants.
func (e *Env) TrustStore() (*trust.Store, error) {
	d, err := e.Folders.State()
	if err != nil {
		return nil, err
	}
	return trust.NewStore(d), nil
}

// SessionOptions are the options of a command's session. The global flags set
// Context, Cache, Locked and Noticed of Options.
type SessionOptions struct {
	session.Options
	Ask   bool // ignore cached listings, unless a flag says otherwise
	Infos bool // print diagnostics of severity info too
	// Asker is used instead of the terminal. nil: ask the person at the
	// terminal.
	Asker session.Asker
	// ServerLog changes where log messages of servers go. nil: to stderr.
	ServerLog func(func() func(mcpclient.LogMessage)) func() func(mcpclient.LogMessage)
	InDocs    bool // the result includes the diagnostics, so those of the settings are not printed
}

// maxDepth is how many runs of toolreg may enclose one another. Settings whose
// programs run toolreg with the same settings would otherwise fill the machine
// with processes.
const maxDepth = 16

// Session reads the settings and creates the session of the run, which is
// closed at its end.
func (e *Env) Session(ctx context.Context, o SessionOptions) (*session.Session, error) {
	if depth := process.Depth(e.Environ); depth > maxDepth {
		return nil, &UsageError{Err: fmt.Errorf("toolreg was started by a program that toolreg runs, %d levels deep (%s)", depth, process.DepthVariable),
			Hint: "a discovery command, plugin, hook or server of the settings probably runs toolreg with the same settings"}
	}
	set, diags, err := e.LoadSettings(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case o.InDocs:
	case o.Infos:
		e.IO.DiagnoseAll(diags)
	default:
		e.IO.Diagnose(diags)
	}
	if o.Context, err = e.context(); err != nil {
		return nil, err
	}
	if o.Locked, err = e.locked(); err != nil {
		return nil, err
	}
	if o.Asker == nil {
		o.Asker = e.Person
	}
	serverLog := e.IO.serverLog(o.Infos)
	if o.ServerLog != nil {
		serverLog = o.ServerLog(serverLog)
	}
	o.Noticed, o.Cache = diags, e.cacheMode(o.Ask)
	deps := e.deps()
	deps.Asker, deps.ServerLog = o.Asker, serverLog
	s, err := session.New(ctx, set, deps, o.Options)
	if err != nil {
		return nil, err
	}
	e.sessions = append(e.sessions, s)
	return s, nil
}

func (e *Env) deps() session.Deps {
	return session.Deps{
		Version: e.Version, Dir: e.Dir, Environ: e.Environ, Start: e.start, Folders: e.Folders, Log: e.IO.Log,
		Warn: e.IO.Warn, Screen: e.IO.Screen, LogLevel: e.IO.logLevel(), Outcome: outcome, Keeper: internal(KeepCommand), Evaluator: internal(EvaluateCommand),
	}
}

// CheckSettings returns the mistakes that [settings.Load] does not find, such as in
// the conditions of rules, as a [settings.Error]. Nothing is started.
func (e *Env) CheckSettings(ctx context.Context, set *settings.Settings) error {
	s, err := session.New(ctx, set, e.deps(), session.Options{Still: true})
	if err == nil {
		s.Close()
	}
	if _, ok := errors.AsType[*settings.Error](err); ok {
		return err
	}
	return nil // for example, the preset or the lock file has a mistake
}

// internal returns the argv of one of our internal commands; nil if our own path
// is unknown.
func internal(command string) []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, command}
}

// Names of internal commands: the one that manages background commands, and the one
// that evaluates jq expressions of plugins and projects.
const (
	KeepCommand     = "keep-background"
	EvaluateCommand = "evaluate-expression"
)

// Again makes a session from settings that are read anew, without asking anybody.
// If that fails, the earlier settings stay.
func (e *Env) Again(session func() (*session.Session, error)) (*session.Session, error) {
	before := e.loaded
	e.loaded, e.Person.NonInteractive = loaded{}, true
	s, err := session()
	if err != nil {
		e.loaded = before
	}
	return s, err
}

// Find finds a tool and prints diagnostics, unless the result includes them.
func (e *Env) Find(ctx context.Context, s *session.Session, name string, q session.Query, inDocs bool) (session.Found, error) {
	f, err := s.Find(ctx, name, q)
	e.NoteSlowServer(s, f.Registry)
	if f.Registry != nil && !inDocs {
		e.IO.DiagnoseBeside(f.Registry.Diagnostics(), err)
	}
	return f, err
}

// FindTools is [Env.Find] for a name that may be a glob: it finds the tools that the
// glob matches, at least one.
func (e *Env) FindTools(ctx context.Context, s *session.Session, name string, inDocs bool) (*registry.Registry, []*registry.Tool, error) {
	if !text.IsGlob(name) {
		f, err := e.Find(ctx, s, name, session.Query{}, inDocs)
		return f.Registry, []*registry.Tool{f.Tool}, err
	}
	reg, tools, err := s.FindAll(ctx, name)
	if reg != nil && !inDocs {
		e.IO.DiagnoseBeside(s.Diagnostics(reg), err)
	}
	return reg, tools, err
}

// close stops everything that the run has started.
func (e *Env) close() {
	e.Person.close()
	for _, s := range e.sessions {
		s.Close()
	}
}

// RefuseInside returns an error inside a tool's run, because a tool must not
// extend what it may do. what is refused, such as "granting trust".
func (e *Env) RefuseInside(what string) error {
	switch {
	case process.Depth(e.Environ) > 0:
		return fmt.Errorf("%w: %s is not possible inside a tool's run (%s is set)", registry.ErrDenied, what, process.DepthVariable)
	case process.InsideTool(e.Environ):
		return fmt.Errorf("%w: %s is not possible inside a tool's run (toolreg started this process)", registry.ErrDenied, what)
	}
	return nil
}
