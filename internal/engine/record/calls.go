// Package record records a session: the log of its calls ([Calls]), a recording that it makes or
// replays ([Tape]), and the masking of secrets in both and in everything that is logged ([Mask]).
// It decides and changes nothing: a call is made even if it cannot be logged.
package record

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/hooks"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/tracing"
	"github.com/toolreg/toolreg/internal/uri"
)

// Options are what the calls of a session are recorded with. Began may be nil, the others are
// required.
type Options struct {
	Settings *settings.Settings
	Folders  *state.Folders
	Mask     *Mask
	Warn     func(registry.Diagnostic)
	Log      *slog.Logger
	// Outcome returns the error code and exit code of an error.
	Outcome func(context.Context, error) (code string, exit int)
	// Began is called with each call as it begins. The function that it returns is called at the
	// end.
	Began func(audit.Entry) (ended func(*audit.Entry))
}

// Calls writes the audit log, which it opens when first needed. It is safe for
// concurrent use. Its user must call Close.
type Calls struct {
	opts Options

	mu      sync.Mutex
	log     *audit.Log // nil until something is added
	answers []answered
}

// NewCalls returns what records the calls of a session. It opens nothing.
func NewCalls(o Options) *Calls { return &Calls{opts: o} }

// openLog returns the log. It fails if there is no state folder.
func (a *Calls) openLog() (*audit.Log, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.log != nil {
		return a.log, nil
	}
	var err error
	a.log, err = OpenLog(a.opts.Folders, a.opts.Settings.Audit)
	return a.log, err
}

// Close closes the log.
func (a *Calls) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.log == nil {
		return nil
	}
	return a.log.Close()
}

// answered is a period in which a person was answering a server's question.
type answered struct {
	server, during string
	from, to       time.Time
}

// waited returns how long the person spent answering a server's questions during a call
// that began at start.
func (a *Calls) waited(t *registry.Tool, start time.Time) (total time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range a.answers {
		if q.server == t.Server && q.during == "tool "+text.Quote(t.ServerTool) && !q.from.Before(start) {
			total += q.to.Sub(q.from)
		}
	}
	return total
}

// OpenLog returns the audit log. It writes nothing until an entry is added.
func OpenLog(folders *state.Folders, set settings.Audit) (*audit.Log, error) {
	d, err := folders.State()
	if err != nil {
		return nil, err
	}
	return &audit.Log{Dir: d, MaxSize: set.MaxSize, Keep: set.Keep}, nil
}

func (a *Calls) addEntry(ctx context.Context, e audit.Entry) {
	e.Project = a.opts.Settings.ProjectRoot
	log, err := a.openLog()
	if err == nil {
		err = log.Add(context.WithoutCancel(ctx), e)
	}
	if err != nil {
		a.opts.Warn(registry.Warning("audit_not_written", "", "the call is not in the audit log: "+err.Error(),
			"set audit.enabled: false to disable the log"))
	}
}

type liveKey struct{}

// Begin returns the context of a call that begins; other calls may be made in it. ended must be
// called at its end.
func (a *Calls) Begin(ctx context.Context, t *registry.Tool) (_ context.Context, ended func()) {
	ctx = context.WithValue(ctx, scriptKey{}, &scriptInfo{parent: scriptOf(ctx)})
	if a.opts.Began == nil {
		return ctx, func() {}
	}
	var last atomic.Pointer[audit.Entry] // that Call has logged
	tell := a.opts.Began(aboutTool(ctx, t, time.Now()))
	return context.WithValue(ctx, liveKey{}, &last), func() { tell(last.Load()) }
}

// Call reports a call in the log of --verbose and writes it to the audit log. A
// failure to write does not stop the call.
func (a *Calls) Call(ctx context.Context, r exec.Record) {
	if errors.Is(context.Cause(ctx), caller.ErrContinued) {
		return
	}
	e := a.newEntry(ctx, r)
	if last, ok := ctx.Value(liveKey{}).(*atomic.Pointer[audit.Entry]); ok {
		last.Store(&e)
	}
	if span := tracing.Current(ctx); span != nil {
		describe(span, &e)
		if a.opts.Settings.Telemetry.Content {
			span.Set("gen_ai.tool.call.arguments", text.Head(string(a.opts.Mask.Params(r.Call.Params)), maxExported))
			span.Set("gen_ai.tool.call.result", text.Head(a.opts.Mask.Message(r.Result.Text()), maxExported))
		}
	}
	log := a.opts.Log
	if e.Caller != nil {
		log = log.With("caller", e.Caller.Name, "client", e.Caller.Client)
	}
	log.Info("call", "tool", e.Tool, "decision", e.Decision, "rule", e.Rule, "attempts", max(e.Attempts, 1),
		"cached", e.Cached, "confined", e.Confined, "sandbox", r.Verdict.Confine.Missing,
		"duration", e.Duration(), "outcome", string(e.Outcome))
	if !a.opts.Settings.Audit.Enabled {
		return
	}
	o := a.opts.Settings.OptionsOf(r.Tool)
	if o.Log == settings.LogNone && e.Outcome.Made() {
		return
	}
	withParams := o.Log == settings.LogParams || o.Log == "" && a.opts.Settings.AuditParams
	if e.Error = a.opts.Mask.Message(errorText(r)); !withParams {
		e.Error = withoutValues(e.Error, r.Call.Params)
	}
	if withParams {
		if e.ParamsCut = len(r.Call.Params) > maxLogged; !e.ParamsCut {
			e.Params = a.opts.Mask.Params(r.Call.Params)
		}
	}
	a.addEntry(ctx, e)
}

// Refused logs a call that was refused without a policy decision because its params could
// not be read. It returns the error.
func (a *Calls) Refused(ctx context.Context, t *registry.Tool, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause // reading was canceled
	}
	_, span := tracing.Start(ctx, tracing.Call, "execute_tool")
	defer span.End()
	if a.opts.Settings.Audit.Enabled || span != nil || a.opts.Began != nil {
		e := a.newEntry(ctx, exec.Record{Tool: t, Start: time.Now(), Err: err})
		describe(span, &e)
		if a.opts.Began != nil {
			a.opts.Began(e)(&e)
		}
		if a.opts.Settings.Audit.Enabled && e.Outcome == audit.Invalid {
			e.ParamsSHA256 = ""
			a.addEntry(ctx, e)
		}
	}
	return err
}

// maxExported is how many bytes of the params and of the result of a call are exported, so that all
// that wait to be exported fit in 16 MiB.
const maxExported = 4 << 10

// describe adds the fields of a log entry to the span of a call, except texts that a tool or a
// caller has written.
func describe(span *tracing.Span, e *audit.Entry) {
	if span == nil {
		return
	}
	span.Label("gen_ai.operation.name", "execute_tool")
	span.Target("gen_ai.tool.name", e.Tool)
	span.Set("toolreg.decision", e.Decision)
	span.Set("toolreg.rule.origin", e.Rule)
	span.Set("toolreg.asked", e.WaitedMs > 0)
	span.Set("toolreg.waited", e.WaitedMs/1000)
	span.Set("toolreg.params.size", e.ParamsBytes)
	span.Set("toolreg.result.size", e.ResultBytes)
	span.Set("toolreg.confined", e.Confined)
	if e.Outcome != audit.OK && e.Outcome != audit.Cancelled {
		span.Fail(cmp.Or(e.Code, string(e.Outcome)))
	}
}

func (a *Calls) newEntry(ctx context.Context, r exec.Record) audit.Entry {
	t := r.Tool
	e := aboutTool(ctx, t, r.Start)
	e.Decision, e.Rule = r.Verdict.Decision.String(), r.Verdict.Origin
	e.ParamsBytes, e.ParamsSHA256 = len(r.Call.Params), audit.HashParams(r.Call.Params)
	e.Cached, e.SavedTokens, e.Attempts = r.Result.Cached, r.Result.SavedTokens, r.Result.Attempts
	e.Confined, e.Outside = r.Result.Confined || r.Outside, r.Outside
	e.Outcome, e.Code, e.Exit = a.outcomeOf(ctx, r.Result, r.Err)
	e.BrokenOff = e.Outcome == audit.Cancelled && !r.Ran
	waited, took := a.waited(t, r.Start), time.Since(r.Start)-r.Asked
	if r.Result.Duration > 0 {
		took = r.Result.Duration
	}
	e.WaitedMs, e.DurationMs = audit.Milliseconds(r.Asked+waited), audit.Milliseconds(max(took-waited, 0))
	for _, c := range r.Result.Content {
		e.ResultBytes += int64(len(c.Text) + len(c.Data))
	}
	if !r.Ran { // otherwise a step was denied, which has its own entry
		e.Rule = cmp.Or(deniedBy(r.Err), e.Rule)
	}
	if e.Outcome == audit.Invalid && r.Verdict.Origin == "" {
		e.Decision = "" // no decision was made
	}
	return e
}

// aboutTool returns an entry with what is known when a call begins.
func aboutTool(ctx context.Context, t *registry.Tool, start time.Time) audit.Entry {
	e := audit.Entry{Time: start, Tool: t.Name, ServerTool: t.ServerTool, Source: t.Source, Server: t.Server}
	if t.OfServer() {
		e.Tool = t.Qualified()
	}
	if t.IsRenamed() {
		e.Upstream = cmp.Or(t.Upstream().Qualified(), t.Upstream().Name)
	}
	if info := scriptOf(ctx); info != nil {
		e.Script, e.Parent, e.ID = info.audit()
	}
	if c := caller.From(ctx); c != nil {
		e.Caller = &audit.Caller{
			Name:    c.Name,
			Client:  c.Client,
			Version: c.Version,
			Groups:  c.Groups,
			Profile: c.Profile,
		}
	}
	return e
}

// deniedBy returns the rule, setting or hook that denied a call; "" if none did.
func deniedBy(err error) string {
	if denied, ok := errors.AsType[*exec.Denied](err); ok {
		return denied.Origin
	}
	if _, ok := errors.AsType[*hooks.Denied](err); ok && errors.Is(err, registry.ErrDenied) {
		return "hook"
	}
	return ""
}

// outcomeOf returns how a call ended: its outcome, its error code and its exit
// code.
func (a *Calls) outcomeOf(ctx context.Context, r registry.Result, err error) (audit.Outcome, string, int) {
	failure := exec.ResultError(r, err)
	if failure == nil {
		return audit.OK, "", 0
	}
	code, exit := a.opts.Outcome(ctx, failure)
	outcomes := map[string]audit.Outcome{"denied": audit.Denied,
		"needs_approval": audit.Denied, "invalid_params": audit.Invalid,
		"limited": audit.Limited, "timeout": audit.Timeout, "interrupted": audit.Cancelled}
	if outcome, ok := outcomes[code]; ok {
		return outcome, code, exit
	}
	if err != nil && (errors.Is(err, context.Canceled) || ctx.Err() != nil) {
		return audit.Cancelled, code, exit
	}
	return audit.Error, code, exit
}

// Question logs the outcome of a server's question: who asked, during which
// tool, and whether it was answered, but never the answer.
func (a *Calls) Question(ctx context.Context, q ask.Elicitation, action string, start time.Time) {
	a.mu.Lock()
	a.answers = append(a.answers, answered{q.Server, q.During, start, time.Now()})
	a.mu.Unlock()
	if !a.opts.Settings.Audit.Enabled {
		return
	}
	asked := q.Schema
	if asked == nil {
		asked, _ = json.Marshal(map[string]string{"url": q.URL}) // a string always encodes
	}
	const method = audit.QuestionMethod
	e := audit.Entry{
		Time: start, Tool: registry.ValidName(q.Server + "__" + method),
		ServerTool: method, Source: registry.MCPPrefix + q.Server, Server: q.Server,
		Decision: "ask", Rule: "person", DurationMs: audit.Milliseconds(time.Since(start)),
		ParamsBytes: len(asked), ParamsSHA256: audit.HashParams(asked), Outcome: audit.OK,
	}
	switch action {
	case "decline":
		e.Outcome, e.Code = audit.Denied, "denied"
	case "cancel":
		e.Outcome, e.Code = audit.Cancelled, "cancelled"
	}
	if e.Code != "" {
		_, e.Exit = a.opts.Outcome(ctx, registry.ErrDenied)
	}
	a.addEntry(ctx, e)
}

// Denied logs a request for a prompt or a resource that a rule denied; t is the tool as which it is
// shown.
func (a *Calls) Denied(ctx context.Context, t *registry.Tool, o policy.Offer, reason, rule string) {
	if !a.opts.Settings.Audit.Enabled {
		return
	}
	e := aboutTool(ctx, t, time.Now())
	e.Tool = registry.ValidName(o.Server + "__" + cmp.Or(o.Prompt, t.ServerTool))
	e.Decision, e.Rule, e.Outcome, e.Error = policy.Deny.String(), rule, audit.Denied, a.opts.Mask.Message(reason)
	if o.URI != "" {
		form, _, _ := strings.Cut(uri.Canonical(o.URI), "?") // a query may have secrets
		e.URI = a.opts.Mask.Message(form)
	}
	e.Code, e.Exit = a.opts.Outcome(ctx, registry.ErrDenied)
	a.addEntry(ctx, e)
}

// errorText returns the error of a failed call; "" if the call did not fail.
func errorText(r exec.Record) string {
	switch {
	case r.Err != nil:
		return r.Err.Error()
	case !r.Result.IsError:
		return ""
	case r.Result.Summary != "":
		return r.Result.Summary
	}
	return r.Result.Text()
}

// valueHead is how many bytes of a value's beginning identify it in a text that
// may have been cut. Shorter values must occur whole.
const valueHead = 16

// withoutValues removes the values of params from a text, because they are not logged
// unless the settings enable it. If the params are too long to search, it returns "".
func withoutValues(text string, params json.RawMessage) string {
	var v any
	if text == "" || len(params) > maxLogged || len(params) > 0 && json.Unmarshal(params, &v) != nil {
		return ""
	}
	for _, value := range stringValues(v, nil) {
		text = withoutValue(text, value)
		quoted, _ := json.Marshal(value) // text always encodes
		text = withoutValue(text, string(quoted[1:len(quoted)-1]))
	}
	return text
}

// stringValues appends the strings in a JSON value that are long enough to be
// private.
func stringValues(v any, out []string) []string {
	switch v := v.(type) {
	case string:
		if len(v) > 2 {
			out = append(out, v)
		}
	case []any:
		for _, item := range v {
			out = stringValues(item, out)
		}
	case map[string]any:
		for _, item := range v {
			out = stringValues(item, out)
		}
	}
	return out
}

func withoutValue(text, value string) string {
	head := value[:min(len(value), valueHead)]
	for from := 0; ; {
		i := strings.Index(text[from:], head)
		if i < 0 || head == "" {
			return text
		}
		i += from
		n := 0
		for n < len(value) && i+n < len(text) && text[i+n] == value[n] {
			n++
		}
		text = text[:i] + "…" + text[i+n:]
		from = i + len("…")
	}
}

// maxLogged is the size of params above which none of them are logged, because
// masking has to read all of them.
const maxLogged = 64 << 10

type scriptKey struct{}

// scriptInfo relates a call to scripts in the audit log. Each call has its own.
type scriptInfo struct {
	id     string
	sha256 string      // of the script that the call runs; "" if it runs none
	parent *scriptInfo // of the call that makes this one; nil if none does
}

func scriptOf(ctx context.Context) *scriptInfo {
	info, _ := ctx.Value(scriptKey{}).(*scriptInfo)
	return info
}

// InScript reports whether a script makes the call of ctx.
func InScript(ctx context.Context) bool {
	info := scriptOf(ctx)
	return info != nil && info.inScript()
}

// RunsScript records that the call of ctx runs a script.
func RunsScript(ctx context.Context, sha256 string) {
	if info := scriptOf(ctx); info != nil {
		info.sha256, info.id = sha256, newID()
	}
}

func (i *scriptInfo) inScript() bool { return i.parent != nil && i.parent.sha256 != "" }

func (i *scriptInfo) audit() (script, parent, id string) {
	script, id = i.sha256, i.id
	if i.inScript() {
		parent = i.parent.id
		if script == "" {
			script, id = i.parent.sha256, newID()
		}
	}
	return script, parent, id
}

func newID() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}
