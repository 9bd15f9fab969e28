package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// Screen shows the progress of a session.
type Screen interface {
	// Watch shows what is waited for until done is called.
	Watch() (done func())
	// Line shows what something that is waited for does; "" removes it. It may be called from
	// any goroutine.
	Line(name, doing string)
	// Pause hides the screen until resume is called.
	Pause() (resume func())
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

// blank is a screen that shows nothing.
type blank struct{}

func (blank) Watch() func()       { return func() {} }
func (blank) Line(string, string) {}
func (blank) Pause() func()       { return func() {} }

// reports collects the problems of a session that do not stop it. It is safe for concurrent use.
type reports struct {
	add    func(registry.Diagnostic) // see [Deps.Warn]
	log    *slog.Logger
	screen Screen
	hide   func(string) string // masks the secrets of the settings

	mu      sync.Mutex
	notices []registry.Diagnostic // those of the session, not of a registry
}

// serverState shows the step of a server that is starting.
func (r *reports) serverState(server string, state mcpclient.State) {
	doing := ""
	if state == mcpclient.StateConnecting || state == mcpclient.StateListing {
		doing = string(state)
	}
	r.screen.Line(server, doing)
}

// shows shows a source until done is called. Servers show their own steps.
func (r *reports) shows(source string) (done func()) {
	name := source
	switch {
	case source == registry.SourceBuiltin, strings.HasPrefix(source, registry.MCPPrefix):
		return func() {}
	case source == registry.SourceCommand:
		name = "discovery command"
	}
	r.screen.Line(name, string(mcpclient.StateListing))
	return func() { r.screen.Line(name, "") }
}

// newReports returns reports that begin with notices. hide masks the secrets of the settings in what
// is reported. log and screen may be nil.
func newReports(warn func(registry.Diagnostic), log *slog.Logger, screen Screen,
	hide func(string) string, notices []registry.Diagnostic) *reports {
	r := &reports{log: log, screen: screen, hide: hide, notices: slices.Clone(notices)}
	r.add = func(d registry.Diagnostic) { warn(r.masked(d)) }
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.screen == nil {
		r.screen = blank{}
	}
	return r
}

// whileRunning reports a problem during a call. It hides the live lines of the call meanwhile.
func (r *reports) whileRunning(d registry.Diagnostic) {
	defer r.screen.Pause()()
	r.add(d)
}

// aboutCall is whileRunning for a warning about a call of a tool.
func (r *reports) aboutCall(t *registry.Tool, code, message, hint string) {
	d := registry.Warning(code, "", message, hint)
	d.Tool = t.Name
	r.whileRunning(d)
}

func (r *reports) masked(d registry.Diagnostic) registry.Diagnostic {
	d.Message, d.Hint = r.hide(d.Message), r.hide(d.Hint)
	return d
}

// notice adds a diagnostic of the session, once.
func (r *reports) notice(d registry.Diagnostic) {
	d = r.masked(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notices = text.AppendNew(r.notices, d)
}

// with returns the diagnostics of the session, then those of loading a registry. If both report
// that a source failed, it appears once.
func (r *reports) with(loading []registry.Diagnostic) []registry.Diagnostic {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(slices.Clone(r.notices), slices.DeleteFunc(loading, func(d registry.Diagnostic) bool {
		return d.Code == settings.CodeSourceFailed && slices.Contains(r.notices, d)
	})...)
}

// announcer calls the hooks onRegister and onDiagnostic, each once.
type announcer struct {
	programs *programs.Set
	reports  *reports
	still    bool // see [Options.Still]
	done     atomic.Bool
}

func (a *announcer) announce(ctx context.Context, reg *registry.Registry) {
	if a.still {
		return
	}
	set := a.programs.Hooks(ctx)
	if set == nil || !a.done.CompareAndSwap(false, true) {
		return
	}
	if err := errors.Join(set.Registered(ctx, reg.Tools()),
		set.Noticed(ctx, a.reports.with(reg.Diagnostics()))); err != nil {
		a.reports.add(registry.Warning("hook_failed", "", err.Error(), ""))
	}
}

// tailOf quotes the end of what a command wrote to stderr, to show how it failed; "" if it wrote
// nothing.
func tailOf(stderr []byte) string {
	const tail = 500 // bytes
	said := strings.TrimSpace(strings.ToValidUTF8(string(stderr[max(0, len(stderr)-tail):]), ""))
	if said == "" {
		return ""
	}
	return "; its stderr ends:\n" + said
}
