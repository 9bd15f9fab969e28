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

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/session"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
)

// Env is the environment of a command. Everything costly is created when first
// used, so that a command pays only for what it needs.
type Env struct {
	Version string
	Argv    []string // the command line, without the program
	IO      *IO
	Person  *Person
	Config  *Config

	start    time.Time
	sessions []*session.Session
	unhelped error // why a command's own help could not be shown
}

func newEnv(version string, s Streams, environ []string) *Env {
	e := &Env{Version: version, IO: newIO(s, environ), start: time.Now()}
	e.Person = &Person{io: e.IO}
	e.Config = &Config{io: e.IO, person: e.Person, Environ: environ, Folders: &state.Folders{Environ: environ}}
	e.IO.context = func() context.Context { return e.Config.command.Context() }
	return e
}

// prepare reads the global flags and their variables without opening any file.
func (e *Env) prepare(cmd *cobra.Command) error {
	if err := e.Config.follow(cmd); err != nil {
		return err
	}
	e.Person.NonInteractive = e.Config.Globals.NonInteractive
	if err := e.IO.follow(e.Config.Globals, e.Config.globalFlags().Changed("jq")); err != nil {
		return err
	}
	if err := e.Config.check(); err != nil {
		return err
	}
	e.IO.live()
	return nil
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
	if depth := process.Depth(e.Config.Environ); depth > maxDepth {
		return nil, &UsageError{Err: fmt.Errorf("toolreg was started by a program that toolreg runs, %d levels deep (%s)", depth, process.DepthVariable),
			Hint: "a discovery command, plugin, hook or server of the settings probably runs toolreg with the same settings"}
	}
	set, diags, err := e.Config.Load(ctx)
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
	if o.Context, err = e.Config.context(); err != nil {
		return nil, err
	}
	if o.Locked, err = e.Config.locked(); err != nil {
		return nil, err
	}
	if o.Asker == nil {
		o.Asker = e.Person
	}
	serverLog := e.IO.serverLog(o.Infos)
	if o.ServerLog != nil {
		serverLog = o.ServerLog(serverLog)
	}
	o.Noticed, o.Cache = diags, e.Config.cacheMode(o.Ask)
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
		Version: e.Version, Dir: e.Config.Dir, Environ: e.Config.Environ, Start: e.start, Folders: e.Config.Folders, Log: e.IO.Log,
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
	set, diags := e.Config.set, e.Config.diags
	e.Config.Forget()
	e.Person.NonInteractive = true
	s, err := session()
	if err != nil {
		e.Config.set, e.Config.diags = set, diags
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
