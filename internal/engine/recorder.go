package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/hooks"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/tracing"
)

// callRecorder writes the audit log, which it opens when first needed. It is safe for
// concurrent use. Its user must call Close.
type callRecorder struct {
	set     *settings.Settings
	folders *state.Folders
	reports *reports
	mask    *masker
	outcome func(context.Context, error) (code string, exit int) // see [Deps.Outcome]
	began   func(audit.Entry) (ended func(*audit.Entry))         // see [Deps.Began]

	mu      sync.Mutex
	log     *audit.Log // nil until something is added
	answers []answered
}

// open returns the log. It fails if there is no state folder.
func (a *callRecorder) open() (*audit.Log, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.log != nil {
		return a.log, nil
	}
	var err error
	a.log, err = OpenAuditLog(a.folders, a.set.Audit)
	return a.log, err
}

// Close closes the log.
func (a *callRecorder) Close() error {
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
func (a *callRecorder) waited(t *registry.Tool, start time.Time) (total time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range a.answers {
		if q.server == t.Server && q.during == "tool "+text.Quote(t.ServerTool) && !q.from.Before(start) {
			total += q.to.Sub(q.from)
		}
	}
	return total
}

// OpenAuditLog returns the audit log. It writes nothing until an entry is added.
func OpenAuditLog(folders *state.Folders, set settings.Audit) (*audit.Log, error) {
	d, err := folders.State()
	if err != nil {
		return nil, err
	}
	return &audit.Log{Dir: d, MaxSize: set.MaxSize, Keep: set.Keep}, nil
}

// add writes an entry to the audit log if there is one.
func (a *callRecorder) add(ctx context.Context, e audit.Entry) {
	e.Project = a.set.ProjectRoot
	log, err := a.open()
	if err == nil {
		err = log.Add(context.WithoutCancel(ctx), e)
	}
	if err != nil {
		a.reports.warn("audit_not_written", "", "the call is not in the audit log: "+err.Error(),
			"set audit.enabled: false to disable the log")
	}
}

type liveKey struct{}

// begin tells [Deps.Began] of a call, and ended of its end.
func (a *callRecorder) begin(ctx context.Context, t *registry.Tool) (_ context.Context, ended func()) {
	if a.began == nil {
		return ctx, func() {}
	}
	var last atomic.Pointer[audit.Entry] // that Call has logged
	tell := a.began(aboutTool(ctx, t, time.Now()))
	return context.WithValue(ctx, liveKey{}, &last), func() { tell(last.Load()) }
}

// Call reports a call in the log of --verbose and writes it to the audit log. A
// failure to write does not stop the call.
func (a *callRecorder) Call(ctx context.Context, r exec.Record) {
	if errors.Is(context.Cause(ctx), caller.ErrContinued) {
		return
	}
	e := a.newEntry(ctx, r)
	if last, ok := ctx.Value(liveKey{}).(*atomic.Pointer[audit.Entry]); ok {
		last.Store(&e)
	}
	if span := tracing.Current(ctx); span != nil {
		describe(span, &e)
		if a.set.Telemetry.Content {
			span.Set("gen_ai.tool.call.arguments", text.Head(string(a.mask.params(r.Call.Params)), maxExported))
			span.Set("gen_ai.tool.call.result", text.Head(a.mask.message(r.Result.Text()), maxExported))
		}
	}
	log := a.reports.log
	if e.Caller != nil {
		log = log.With("caller", e.Caller.Name, "client", e.Caller.Client)
	}
	log.Info("call", "tool", e.Tool, "decision", e.Decision, "rule", e.Rule, "attempts", max(e.Attempts, 1),
		"cached", e.Cached, "confined", e.Confined, "sandbox", r.Verdict.Confine.Missing,
		"duration", e.Duration(), "outcome", string(e.Outcome))
	if !a.set.Audit.Enabled {
		return
	}
	o := a.set.OptionsOf(r.Tool)
	if o.Log == settings.LogNone && e.Outcome.Made() {
		return
	}
	withParams := o.Log == settings.LogParams || o.Log == "" && a.set.AuditParams
	if e.Error = a.mask.message(errorText(r)); !withParams {
		e.Error = withoutValues(e.Error, r.Call.Params)
	}
	if withParams {
		if e.ParamsCut = len(r.Call.Params) > maxLogged; !e.ParamsCut {
			e.Params = a.mask.params(r.Call.Params)
		}
	}
	a.add(ctx, e)
}

// Refused logs a call that was refused without a policy decision because its params could
// not be read. It returns the error.
func (a *callRecorder) Refused(ctx context.Context, t *registry.Tool, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause // reading was canceled
	}
	_, span := tracing.Start(ctx, tracing.Call, "execute_tool")
	defer span.End()
	if a.set.Audit.Enabled || span != nil || a.began != nil {
		e := a.newEntry(ctx, exec.Record{Tool: t, Start: time.Now(), Err: err})
		describe(span, &e)
		if a.began != nil {
			a.began(e)(&e)
		}
		if a.set.Audit.Enabled && e.Outcome == audit.Invalid {
			e.ParamsSHA256 = ""
			a.add(ctx, e)
		}
	}
	return err
}

// maxExported is how much of the params and of the result of a call is exported, in bytes, so
// that those that wait to be exported fit in 16 MiB.
const maxExported = 4 << 10

// describe gives the span of a call what the log has of it, without texts that a tool or a
// caller has written. A name that is exported is that of the log.
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

// newEntry returns the log entry of a call.
func (a *callRecorder) newEntry(ctx context.Context, r exec.Record) audit.Entry {
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
		e.Caller = &audit.Caller{Name: c.Name, Client: c.Client, Version: c.Version, Groups: c.Groups, Profile: c.Profile}
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
func (a *callRecorder) outcomeOf(ctx context.Context, r registry.Result, err error) (audit.Outcome, string, int) {
	failure := exec.ResultError(r, err)
	if failure == nil {
		return audit.OK, "", 0
	}
	code, exit := a.outcome(ctx, failure)
	switch code {
	case "denied", "needs_approval":
		return audit.Denied, code, exit
	case "invalid_params":
		return audit.Invalid, code, exit
	case "limited":
		return audit.Limited, code, exit
	case "timeout":
		return audit.Timeout, code, exit
	case "interrupted":
		return audit.Cancelled, code, exit
	}
	if err != nil && (errors.Is(err, context.Canceled) || ctx.Err() != nil) {
		return audit.Cancelled, code, exit
	}
	return audit.Error, code, exit
}

// Question logs the outcome of a server's question: who asked, during which
// tool, and whether it was answered, but never the answer.
func (a *callRecorder) Question(ctx context.Context, q ask.Elicitation, action string, start time.Time) {
	a.mu.Lock()
	a.answers = append(a.answers, answered{q.Server, q.During, start, time.Now()})
	a.mu.Unlock()
	if !a.set.Audit.Enabled {
		return
	}
	asked := q.Schema
	if asked == nil {
		asked, _ = json.Marshal(map[string]string{"url": q.URL}) // a string always encodes
	}
	const method = audit.QuestionMethod
	e := audit.Entry{
		Time: start, Tool: registry.ValidName(q.Server + "__" + method), ServerTool: method, Source: registry.MCPPrefix + q.Server, Server: q.Server,
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
		_, e.Exit = a.outcome(ctx, registry.ErrDenied)
	}
	a.add(ctx, e)
}

type scriptKey struct{}

// scriptInfo is what the audit log says about a call and scripts. Each call has its own.
type scriptInfo struct {
	id     string
	sha256 string      // of the script that the call runs; "" if it runs none
	parent *scriptInfo // of the call that makes this one; nil if none does
}

func scriptOf(ctx context.Context) *scriptInfo {
	info, _ := ctx.Value(scriptKey{}).(*scriptInfo)
	return info
}

// inScript reports whether a script makes the call.
func (i *scriptInfo) inScript() bool { return i.parent != nil && i.parent.sha256 != "" }

// audit returns the fields of the audit log.
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
