package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/atomicfile"
	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/record"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/recording"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/telemetry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui/asking"
)

// Engine opens the sessions of a run, finds tools in them, and prints what they report.
// The sessions are closed at the end of the run.
type Engine struct {
	version string
	start   time.Time // of the run
	io      *IO
	person  *Person
	config  *Config

	sessions []*engine.Session
	exporter *telemetry.Exporter // nil before it is needed
	// Scrape is set before the session is created if [Engine.WriteMetrics] will be called.
	Scrape     bool
	recordings recordings
}

// SessionOptions are the options of a command's session. The global flags set
// Context, Cache, Locked and Noticed of Options.
type SessionOptions struct {
	engine.Options
	Ask   bool // ignore cached listings, unless a flag says otherwise
	Infos bool // print diagnostics of severity info too
	// Asker answers the questions; nil means the person at the terminal.
	Asker engine.Asker
	// ServerLog replaces the handler of servers' log messages; nil means stderr.
	ServerLog func(func() func(mcpclient.LogMessage)) func() func(mcpclient.LogMessage)
	// Began is called with each call; see [engine.Deps]. It may be nil.
	Began func(audit.Entry) func(*audit.Entry)
	// InServers says that the result shows servers, so the diagnostics about entries of servers are
	// not printed.
	InServers bool
	Settings  *settings.Settings // instead of the settings of the run; nil means those
	InDocs    bool               // the result includes the diagnostics, so those of the settings are not printed
}

// maxDepth is how many runs of toolreg may enclose one another. Settings whose
// programs run toolreg with the same settings would otherwise fill the machine
// with processes.
const maxDepth = 16

// Session reads the settings and creates the session of the run, which is
// closed at its end.
func (x *Engine) Session(ctx context.Context, o SessionOptions) (*engine.Session, error) {
	if depth := process.Depth(x.config.Environ); depth > maxDepth {
		return nil, &UsageError{Err: fmt.Errorf(
			"toolreg was started by a program that toolreg runs, %d levels deep (%s)", depth, process.DepthVariable),
			Hint: "a discovery command, plugin, hook or server of the settings probably runs toolreg with the same settings"}
	}
	set, diags, err := x.config.Load(ctx)
	if err != nil {
		return nil, err
	}
	shown := slices.DeleteFunc(slices.Clone(diags), func(d registry.Diagnostic) bool {
		_, isServer := registry.ServerOf(d.Source)
		return o.InServers && d.Code == settings.CodeSourceFailed && isServer
	})
	switch {
	case o.InDocs:
	case o.Infos:
		x.io.DiagnoseAll(shown)
	default:
		x.io.Diagnose(shown)
	}
	if set.NothingImported != nil {
		return nil, set.NothingImported
	}
	if p := set.View; p != nil {
		note := fmt.Sprintf("the tools that %s gets from its MCP servers; its own built-in tools are not known to toolreg and not counted", p.Title)
		if o.InDocs {
			diags = append(slices.Clip(diags),
				registry.Diagnostic{Severity: registry.SeverityInfo, Code: "program_view", Message: note})
		} else {
			x.io.Notef("%s", note)
		}
	}
	if o.Settings != nil {
		set, diags = o.Settings, nil
	}
	if o.Context, err = x.config.Context(); err != nil {
		return nil, err
	}
	o.Locked = x.config.Globals.Locked
	if o.Asker == nil {
		o.Asker = x.person
	}
	serverLog := x.io.serverLog(o.Infos)
	if o.ServerLog != nil {
		serverLog = o.ServerLog(serverLog)
	}
	if err := x.recordings.openFiles(ctx, set); err != nil {
		return nil, err
	}
	if err := x.startTelemetry(ctx, set); err != nil {
		return nil, err
	}
	o.Noticed, o.Cache = diags, x.config.cacheMode(o.Ask)
	deps := x.deps()
	deps.Asker, deps.ServerLog, deps.Began = o.Asker, serverLog, o.Began
	deps.Record, deps.Replay = x.recordings.recorder, x.recordings.recorded
	s, err := engine.New(ctx, set, deps, o.Options)
	if err != nil {
		return nil, err
	}
	x.sessions = append(x.sessions, s)
	return s, nil
}

func (x *Engine) deps() engine.Deps {
	self, err := os.Executable()
	internal := func(command string) []string {
		if err != nil {
			return nil // the path of the running program is unknown
		}
		return []string{self, command}
	}
	return engine.Deps{
		Version: x.version, Dir: x.config.Dir, Environ: x.config.Environ, Start: x.start, Folders: x.config.Folders,
		Log: x.io.Log, Warn: x.io.Warn, Describe: asking.Prompt, Screen: x.io.Screen, LogLevel: x.io.logLevel(),
		Outcome: outcome, Keeper: internal(KeepCommand), ServerKeeper: internal(KeepServerCommand),
		Evaluator: internal(EvaluateCommand), ScriptEngine: internal(ScriptCommand),
	}
}

// CheckSettings returns mistakes that [settings.Load] does not find, such as in the conditions of
// rules, as a [document.Error]. It starts nothing.
func (x *Engine) CheckSettings(ctx context.Context, set *settings.Settings) error {
	s, err := engine.New(ctx, set, x.deps(), engine.Options{Still: true})
	if err == nil {
		s.Close()
	}
	if _, ok := errors.AsType[*document.Error](err); ok {
		return err
	}
	return nil // for example, the preset or the lock file has a mistake
}

// Names of internal commands: the one that manages background commands, the one that keeps
// a server, the one that evaluates jq expressions of plugins and projects, and the one that
// executes scripts.
const (
	KeepCommand       = "keep-background"
	KeepServerCommand = "keep-server"
	EvaluateCommand   = "evaluate-expression"
	ScriptCommand     = "execute-script"
)

func isInternal(argv []string) bool {
	return len(argv) > 0 &&
		slices.Contains([]string{KeepCommand, KeepServerCommand, EvaluateCommand, ScriptCommand}, argv[0])
}

// Again reads the settings again and calls session to create a session from them. It
// asks no questions. If it fails, the earlier settings stay in use.
func (x *Engine) Again(session func() (*engine.Session, error)) (*engine.Session, error) {
	set, diags := x.config.set, x.config.diags
	x.config.Forget()
	x.person.NonInteractive = true
	s, err := session()
	if err != nil {
		x.config.set, x.config.diags = set, diags
	}
	return s, err
}

// Find finds a tool and prints diagnostics, unless the result includes them.
func (x *Engine) Find(ctx context.Context, s *engine.Session,
	name string, q engine.Query, inDocs bool) (engine.Found, error) {
	f, err := s.Tools.Find(ctx, name, q)
	x.NoteSlowServer(s, f.Registry)
	if f.Registry != nil && !inDocs {
		x.io.DiagnoseExcept(f.Registry.Diagnostics(), err)
	}
	return f, err
}

// FindTools is like [Engine.Find], but name may be a glob. It returns the tools that
// match, and an error if none does.
func (x *Engine) FindTools(ctx context.Context, s *engine.Session,
	name string, inDocs bool) (*registry.Registry, []*registry.Tool, error) {
	if !text.IsGlob(name) {
		f, err := x.Find(ctx, s, name, engine.Query{Script: true}, inDocs)
		return f.Registry, []*registry.Tool{f.Tool}, err
	}
	reg, tools, err := s.Tools.FindAll(ctx, name)
	if reg != nil && !inDocs {
		x.io.DiagnoseExcept(s.Tools.Diagnostics(reg), err)
	}
	return reg, tools, err
}

func (x *Engine) close(ctx context.Context) error {
	for _, s := range x.sessions {
		s.Close()
	}
	if x.exporter != nil {
		// Pending data is sent even if ctx has ended.
		if err := x.exporter.Close(context.WithoutCancel(ctx)); err != nil {
			x.io.Log.Debug("exporting telemetry", "err", err)
		}
	}
	return x.recordings.close()
}

const (
	// slowStart is how long a server may take to start before the person is told how
	// to avoid the wait.
	slowStart = 3 * time.Second
	// slowNoted is the file name for firstTime.
	slowNoted = "cache-hint-shown"
)

// NoteSlowServer tells a person at the terminal once how to cache tool lists,
// if they are not cached and a server started slowly.
func (x *Engine) NoteSlowServer(s *engine.Session, reg *registry.Registry) {
	if reg == nil || !x.io.ErrTTY || x.io.JSON || x.io.Quiet || s.Settings.DiscoveryTTL > 0 {
		return
	}
	for _, r := range reg.Reports() {
		server, ok := registry.ServerOf(r.Name)
		if !ok || r.State == registry.StateFailed || r.Duration < slowStart {
			continue
		}
		if !x.config.firstTime(slowNoted) {
			return
		}
		x.io.noteText(ErrorBody{
			Message: fmt.Sprintf("server %q took %.1f s to start", server, r.Duration.Seconds()),
			Hint:    "toolreg settings set cache.discovery 1h caches the tool lists of servers for an hour",
		})
		return
	}
}

// recordings opens the recording that a run makes or replays. All its sessions use the same.
type recordings struct {
	config   *Config
	recorder *recording.Recorder
	recorded *recording.Recording
	root     string // of the project
	apart    string // folder with what a replay stores; "" means there is none
}

// openFiles opens what --record and --replay name, once. A file that cannot be written is found
// before anything runs.
func (r *recordings) openFiles(ctx context.Context, set *settings.Settings) error {
	g := r.config.Globals
	if r.recorder != nil || r.recorded != nil || g.Record == "" && g.Replay == "" {
		return nil
	}
	r.root = set.ProjectRoot
	folders := recording.NewFolders(set.ProjectRoot, r.config.Getenv("HOME"))
	if g.Record != "" {
		if err := r.writeRecording(nil, false); err != nil {
			return &UsageError{Err: fmt.Errorf("--record: %w", err)}
		}
		r.recorder = recording.NewRecorder(folders, record.Errors())
		return nil
	}
	data, err := r.config.ReadFile(ctx, g.Replay, recording.MaxSize)
	if err == nil {
		r.recorded, err = recording.Read(g.Replay, data, folders, record.Errors())
	}
	if err != nil {
		return &UsageError{Err: fmt.Errorf("--replay: %w", err), Hint: "a recording is made with --record FILE"}
	}
	return r.detach()
}

// detach separates what a replay stores from what other runs read: answers from a recording are not
// those of a server.
func (r *recordings) detach() (err error) {
	if r.apart, err = os.MkdirTemp("", "toolreg-replay-"); err == nil {
		err = r.config.Folders.Detach(r.apart)
	}
	if err != nil {
		return fmt.Errorf("--replay: making a folder for what the replay stores: %w", err)
	}
	return nil
}

// close writes the recording.
func (r *recordings) close() error {
	if r.apart != "" {
		_ = os.RemoveAll(r.apart) // nothing reads what remains
	}
	if r.recorder == nil {
		return nil
	}
	data, err := r.recorder.Bytes()
	if err == nil {
		err = r.writeRecording(data, true)
	}
	if err != nil {
		return fmt.Errorf("the recording is not written: %w", err)
	}
	return nil
}

// writeRecording replaces the file of --record, or without commit only checks that it can.
func (r *recordings) writeRecording(data []byte, commit bool) error {
	file := r.config.Absolute(r.config.Globals.Record)
	folder, _, err := r.config.folder(r.root, file)
	if err != nil {
		return withName(r.config.Globals.Record, err)
	}
	defer folder.Close()
	name, options := filepath.Base(file), atomicfile.Options{Mode: 0o600}
	if info, err := folder.Lstat(name); err == nil && !info.Mode().IsRegular() && info.Mode()&os.ModeSymlink == 0 {
		return fmt.Errorf("%s is not a file", file)
	}
	if commit {
		err = atomicfile.Write(folder, name, data, options)
	} else {
		var staged *atomicfile.File
		if staged, err = atomicfile.Stage(folder, name, nil,
			atomicfile.Options{Mode: 0o600, Volatile: true}); err == nil {
			staged.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// startTelemetry starts exporting traces and metrics, once.
func (x *Engine) startTelemetry(ctx context.Context, set *settings.Settings) error {
	if x.exporter != nil {
		return nil
	}
	expand := func(ctx context.Context) (map[string]string, error) {
		headers, err := values.NewExpander(set.ProjectRoot, x.config.Environ).Pairs(ctx, "headers", set.Telemetry.Headers)
		out := map[string]string{}
		for _, h := range headers {
			out[h.Name] = h.Value
		}
		return out, err
	}
	headers, err := expand(ctx)
	if err != nil {
		return &UsageError{Err: err}
	}
	current := secret.NewCurrent(headers)
	if slices.ContainsFunc(set.Telemetry.Headers, func(h settings.Pair) bool { return secret.CanChange(h.Value) }) {
		current.Reread(expand)
	}
	o := telemetry.Options{
		Endpoint: set.Telemetry.Endpoint, Headers: current, Getenv: x.config.Getenv,
		Version: x.version, Scrape: x.Scrape, Log: x.io.Log, Warn: func(message string) {
			x.io.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "telemetry", Message: message})
		},
	}
	x.exporter = telemetry.Start(ctx, o)
	return nil
}

// WriteMetrics answers a request for metrics from Prometheus.
func (x *Engine) WriteMetrics(w http.ResponseWriter, r *http.Request, numbers *telemetry.Numbers) {
	w.Header().Set("Content-Type", telemetry.PrometheusType)
	if err := x.exporter.WritePrometheus(r.Context(), w, numbers); err != nil {
		http.Error(w, "the metrics cannot be collected", http.StatusInternalServerError)
	}
}
