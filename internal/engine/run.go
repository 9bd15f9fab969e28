package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/recording"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sandbox/confine"
	"github.com/toolreg/toolreg/internal/settings"
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
	Log     *slog.Logger // nil: silent

	// Warn reports a problem that does not stop a request. It may be called
	// from any goroutine.
	Warn func(registry.Diagnostic)
	// Asker asks the person. nil: nobody can be asked.
	Asker Asker
	// Describe returns a question as data, for approval.command and for later answers. nil:
	// a question is only asked with Asker.
	Describe func(exec.Question) exec.Prompt
	// Began is told of each call as it begins, with what is known of it by then, and returns
	// what is told of its end; nil if the call goes on in another run. nil: nobody is told.
	Began func(audit.Entry) (ended func(*audit.Entry))
	// Screen shows progress. nil: nothing is shown.
	Screen Screen
	// ServerLog returns the function that receives one server's log messages;
	// LogLevel is the lowest level that servers are asked to send.
	ServerLog func() func(mcpclient.LogMessage)
	LogLevel  string
	// Outcome returns the error code and exit code of an error, for the audit
	// log.
	Outcome func(context.Context, error) (code string, exit int)
	// Keeper is the command that manages background commands of tools; it
	// receives the arguments of builtin.Keep. nil: there are no background
	// commands.
	Keeper []string
	// ServerKeeper is the command that runs KeepServer. nil: no server is kept.
	ServerKeeper []string
	// Evaluator is the command that runs jq.Evaluate, for expressions of plugins and
	// projects. nil: they are evaluated here, limited only in time.
	Evaluator []string
	// ScriptEngine is the command that runs script.Execute. nil: scripts cannot be run.
	ScriptEngine []string
	// Record records the session; Replay has what its sources answer. At most one is set.
	Record *recording.Recorder
	Replay *recording.Recording
}

// Asker asks the person at the terminal.
type Asker interface {
	// Confirmer returns the confirmer for calls, or nil if nobody can be asked.
	Confirmer() exec.Confirmer
	// Elicit asks a server's question. If nobody can be asked, the error is a
	// *NobodyError.
	Elicit(context.Context, ask.Elicitation) (ask.Answer, error)
}

// Sampler is an [Asker] that answers sampling requests itself, instead of the setting
// sampling.command. The result is that of sampling/createMessage.
type Sampler interface {
	Sample(context.Context, ask.Sampling) (json.RawMessage, error)
}

// NobodyError says why nobody could be asked a question.
type NobodyError struct{ Reason string }

func (e *NobodyError) Error() string { return e.Reason }

// Screen shows the progress of a session.
type Screen interface {
	// Watch shows the state of servers until done is called.
	Watch() (done func())
	// ServerState shows a step of a server. It may be called from any goroutine.
	ServerState(server string, state mcpclient.State)
	// Pause removes what is shown until resume is called.
	Pause() (resume func())
}

// Options are the options of one run. The zero value has no restrictions.
type Options struct {
	Preset  string            // only the tools of these presets; "" = all
	Context []Fact            // context values for this run
	Cache   cache.Mode        // how cached listings are used
	Still   bool              // start nothing, not even a command reference in the settings; Cache must be cache.Offline
	Counts  bool              // also count prompts and resources of servers
	Uncut   bool              // do not shorten results
	Guard   bool              // guard the processes of servers, see [process.Spec]
	Kept    mcpclient.KeptUse // of servers with keep
	List    bool              // nothing is called: servers are stopped as soon as they have listed their tools
	Locked  bool              // refuse tools that differ from toolreg.lock
	// Earlier is the session that this one is to replace. Servers whose settings are the same
	// go on in this one, see [Session.TakeOver]. nil: all servers are new.
	Earlier *Session
	// Shared says that the session serves clients together with other processes, by the
	// store of the settings (serve.store), if there is one.
	Shared bool
	// ClientLogins says that all callers have tokens, as they do with Shared and serve.oauth in
	// any case. Servers with oauth.per: client are then reached with the login of the client that
	// calls; otherwise with that of the person.
	ClientLogins bool
	// Host is the source of the functions that the program which drives toolreg provides; its
	// tools are registered first. May be nil.
	Host registry.Source
	// Noticed has the diagnostics of reading the settings, which come first in
	// what [Tools.Diagnostics] returns.
	Noticed []registry.Diagnostic
	// Last is a filter that runs after all others, instead of Locked. nil:
	// none.
	Last       registry.Filter
	Listed     *Listed                                              // collects the tools that servers list; nil: nothing does
	LastShaped func(t *registry.Tool, name string) *registry.Hidden // likewise, for overrides
}

// InputError is a mistake in a flag, a variable, or an entry of the settings that is
// invalid only in combination with others.
type InputError struct {
	Err  error
	Hint string // what to do; may be empty
}

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// run is the state of a run that all parts of a session share.
type run struct {
	set      *settings.Settings
	deps     Deps
	opts     Options
	expander *values.Expander
	env      []string // of the commands that tools run
	ownEnv   []string // of programs that no setting of the project names; see [settings.Settings.For]
	rules    *policyRules
	mask     *masker
	confiner *confine.Confiner
	// credentialPlaces returns what policy.Policy has as Credentials.
	credentialPlaces func() func(path string) string
	notices          notices
	inside           func() (server string, ok bool) // see process.InsideServer
	quotas           *quotas
	store            *store.Store // nil unless Options.Shared is set and there is one
	opening          sync.Mutex
	opened           *store.Store        // see clientStore; nil: it was not needed
	next             atomic.Pointer[run] // of the session that has replaced this one; nil: none has
}

// notices are the diagnostics of a session that are not those of a registry. They are
// safe for concurrent use.
type notices struct {
	mu  sync.Mutex
	all []registry.Diagnostic
}

// add adds a diagnostic, unless it was added before.
func (n *notices) add(d registry.Diagnostic) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.all, d) {
		n.all = append(n.all, d)
	}
}

func newRun(set *settings.Settings, deps Deps, opts Options) *run {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Screen == nil {
		deps.Screen = blank{}
	}
	r := &run{set: set, deps: deps, opts: opts, expander: values.NewExpander(set.ProjectRoot, deps.Environ), notices: notices{all: slices.Clone(opts.Noticed)},
		inside: sync.OnceValues(func() (string, bool) { return process.InsideServer(deps.Environ) })}
	r.credentialPlaces = sync.OnceValue(func() func(string) string { return r.confiner.Credentials(toolRuns{r}.Folder) })
	r.confiner = confine.New(confine.Options{Settings: set, Environ: deps.Environ, Env: r.programEnv, Expand: r.expander.Expand, Hide: r.privateFolders, Closed: deps.Folders.SocketFolders, Protect: r.guardedPaths, Neutral: deps.Folders.Neutral, Logs: deps.Folders.Sandbox, Warn: deps.Warn, Log: deps.Log})
	r.opts.ClientLogins = opts.ClientLogins || opts.Shared && set.Serve.OAuth.Issuer.Value != ""
	r.quotas = &quotas{}
	if opts.Earlier != nil {
		r.quotas = opts.Earlier.run.quotas
	}
	r.expander.Environ = append(slices.Clone(r.expander.Environ), r.bytecode())
	r.expander.Confine = func(scope settings.Scope) process.Confiner { return r.confiner.ProgramsOf(confine.References, scope) }
	if opts.Still {
		r.opts.Cache, r.expander = cache.Offline, r.expander.Still()
	}
	return r
}

// programEnv returns the environment of commands, or that of the process as long as the
// former is unknown.
func (r *run) programEnv() []string {
	if r.env == nil {
		return r.expander.Environ
	}
	return r.env
}

// envFor returns the environment of a program that a setting names. That of tools has the variables
// of a project, too.
func (r *run) envFor(c settings.Command) []string {
	if c.Origin.Scope == settings.ScopeProject {
		return r.env
	}
	return r.ownEnv
}

// bytecode returns a variable with which Python keeps compiled modules in a folder of toolreg.
// Those in a project are not covered by trust, because they change from run to run, but an
// archive can give a module that does something else the times that Python expects. It also
// keeps Python from writing to the folders of plugins, which would revoke trust.
func (r *run) bytecode() string {
	folder := os.DevNull
	if dir, err := r.deps.Folders.Cache("python"); err == nil {
		folder = dir.Path
	}
	return "PYTHONPYCACHEPREFIX=" + folder
}

// privateFolders returns toolreg's own folders in the home folder, which confined
// programs must not read.
func (r *run) privateFolders() []string {
	var out []string
	if dir := settings.UserFolder(r.deps.Environ); dir != "" {
		out = append(out, dir)
	}
	if d, err := r.deps.Folders.State(); err == nil {
		out = append(out, d.Path)
	}
	if dir, err := state.DefaultDir(r.deps.Environ); err == nil && !slices.Contains(out, dir) {
		out = append(out, dir)
	}
	if dir, err := state.DefaultCacheDir(r.deps.Environ); err == nil {
		out = append(out, dir)
	}
	if dir, err := r.deps.Folders.Secrets(); err == nil {
		out = append(out, dir.Path)
	}
	return append(out, r.deps.Folders.SocketFolders()...)
}

// protectedPaths returns the files and folders of toolreg that no tool may change.
func (r *run) protectedPaths() []string {
	out := append(r.set.ProtectedPaths(r.deps.Environ, r.deps.Dir, r.set.Globals.Files), filepath.Join(r.set.ProjectRoot, lock.Name))
	if dir, err := state.DefaultDataDir(r.deps.Environ); err == nil {
		out = append(out, dir)
	}
	return out
}

// guardedPaths returns what sandboxed programs do not change: the protected paths, and the
// scripts in the workspace that run outside the sandbox without a question.
func (r *run) guardedPaths() []string {
	scripts, err := r.set.Scripts(r.deps.Environ)
	if err != nil {
		r.warn("sandbox_scripts", "", "sandboxed programs may change scripts of the settings: "+err.Error(), "")
	}
	return append(r.protectedPaths(), scripts...)
}

// warn reports a problem that does not stop the run. source may be empty.
func (r *run) warn(code, source, message, hint string) {
	r.deps.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: code, Source: source, Message: message, Hint: hint})
}

// blank is a screen that shows nothing.
type blank struct{}

func (blank) Watch() func()                       { return func() {} }
func (blank) ServerState(string, mcpclient.State) {}
func (blank) Pause() func()                       { return func() {} }

// Fact is one value of the context, given for this run.
type Fact struct {
	Name  string
	Value json.RawMessage
}

// shell returns the shell whose grammar is used to read commands, which is the one that
// runs them.
func (r *run) shell() string { return builtin.Shell(r.env) }
