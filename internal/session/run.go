package session

import (
	"context"
	"log/slog"
	"time"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/exec"
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

	// Warn reports what does not stop a request. It may be called from any
	// goroutine.
	Warn func(registry.Diagnostic)
	// Asker asks the person. nil: nobody is there.
	Asker Asker
	// Screen shows what goes on. nil: nothing is shown.
	Screen Screen
	// ServerLog returns the function that receives one server's log messages;
	// LogLevel is the lowest level that servers are asked for.
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
	// ServerState shows a step of a server. It may be called from any goroutine.
	ServerState(server string, state mcpclient.State)
	// Pause takes what is shown away until resume is called.
	Pause() (resume func())
}

// Options are what one run wants. The zero value is a run with nothing special.
type Options struct {
	Preset  string     // only the tools of these presets; "" = all
	Context []Fact     // facts for plugins that were given for this run
	Cache   cache.Mode // what to make of listings that are kept
	Still   bool       // nothing is started, not even for a reference in the settings; Cache is cache.Offline
	Counts  bool       // prompts and resources of servers are counted too
	Uncut   bool       // results are not cut
	Locked  bool       // refuse tools that differ from toolreg.lock
	// Noticed is what was noticed before, while the settings were read; it opens
	// what [Session.Diagnostics] returns.
	Noticed []registry.Diagnostic
	// Last is a filter after all others, in place of Locked. nil: none.
	Last registry.Filter
}

// InputError is a mistake in what the person gave: a flag, a variable, an entry
// of the settings that only the whole shows.
type InputError struct {
	Err  error
	Hint string // what to do; may be empty
}

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// run is what every part of a session knows of the run.
type run struct {
	set      *settings.Settings
	deps     Deps
	opts     Options
	expander *settings.Expander
	env      []string // of the commands that tools run
}

func newRun(set *settings.Settings, deps Deps, opts Options) *run {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Screen == nil {
		deps.Screen = blank{}
	}
	r := &run{set: set, deps: deps, opts: opts, expander: settings.NewExpander(set.ProjectRoot, deps.Environ)}
	if opts.Still {
		r.opts.Cache, r.expander = cache.Offline, r.expander.Still()
	}
	return r
}

// warn tells of something that does not stop the run. source may be empty.
func (r *run) warn(code, source, message, hint string) {
	r.deps.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: code, Source: source, Message: message, Hint: hint})
}

// blank is a screen that shows nothing.
type blank struct{}

func (blank) Watch() func()                       { return func() {} }
func (blank) ServerState(string, mcpclient.State) {}
func (blank) Pause() func()                       { return func() {} }
