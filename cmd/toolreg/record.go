package main

import (
	"context"
	"errors"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/hooks"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// observeCall writes one call to the audit log. That it cannot be written does
// not stop the call.
func (a *app) observeCall(ctx context.Context, r exec.Record, log *audit.Log, noLog error) {
	e := newEntry(ctx, r)
	e.Project = a.set.ProjectRoot
	o := optionsOf(a.set, r.Tool)
	if o.log == settings.LogNone && e.Outcome.Made() {
		return
	}
	if o.log == settings.LogParams || o.log == "" && a.set.AuditParams {
		if e.ParamsCut = len(r.Call.Params) > maxLogged; !e.ParamsCut {
			e.Params = maskedParams(r.Call.Params)
		}
	}
	a.addEntry(ctx, e, log, noLog)
}

// maxLogged is the size of params from which on not even their beginning is
// logged: masking has to read all of them.
const maxLogged = 64 << 10

// refusedParams logs a call that was refused before anything decided on it,
// because its params could not be read.
func (a *app) refusedParams(ctx context.Context, t *registry.Tool, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause // it was the reading that ended
	}
	if a.set.Audit.Enabled {
		e := newEntry(ctx, exec.Record{Tool: t, Start: time.Now(), Err: err})
		if e.Outcome == audit.Invalid {
			e.Project, e.ParamsSHA256 = a.set.ProjectRoot, ""
			log, noLog := a.auditLog(a.set)
			a.addEntry(ctx, e, log, noLog)
		}
	}
	return err
}

// addEntry writes to the log, if there is a place for it.
func (a *app) addEntry(ctx context.Context, e audit.Entry, log *audit.Log, err error) {
	if err == nil {
		err = log.Add(context.WithoutCancel(ctx), e)
	}
	if err != nil {
		a.warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "audit_not_written", Message: "the call is not in the audit log: " + err.Error(),
			Hint: "the setting audit.enabled: false switches the log off"})
	}
}

// newEntry says of a call what the log holds of it.
func newEntry(ctx context.Context, r exec.Record) audit.Entry {
	t := r.Tool
	e := audit.Entry{
		Time: r.Start, Tool: t.Name, ServerTool: t.ServerTool, Source: t.Source, Server: t.Server,
		Decision: r.Verdict.Decision.String(), Rule: r.Verdict.Origin,
		DurationMs:  audit.Milliseconds(time.Since(r.Start)),
		ParamsBytes: len(r.Call.Params), ParamsSHA256: audit.HashParams(r.Call.Params),
		Cached: r.Result.Cached, Attempts: r.Result.Attempts,
	}
	if t.IsMCP() {
		e.Tool = t.Qualified()
	}
	if r.Result.Duration > 0 { // without the time that a person took to answer
		e.DurationMs = audit.Milliseconds(r.Result.Duration)
	}
	for _, c := range r.Result.Content {
		e.ResultBytes += int64(len(c.Text) + len(c.Data))
	}
	e.Outcome, e.Code, e.Exit = outcomeOf(ctx, r.Result, r.Err)
	if denied, ok := errors.AsType[*exec.Denied](r.Err); ok {
		e.Rule = denied.Origin
	} else if _, ok := errors.AsType[*hooks.Denied](r.Err); ok {
		e.Rule = "hook"
	}
	if e.Outcome == audit.Invalid && r.Verdict.Origin == "" {
		e.Decision = "" // it did not come to one
	}
	return e
}

// outcomeOf says how a call ended, in the words of the log and of the exit code.
func outcomeOf(ctx context.Context, r registry.Result, err error) (audit.Outcome, string, int) {
	if err == nil {
		switch {
		case !r.IsError:
			return audit.OK, "", exitOK
		case r.ErrorCategory == registry.ErrorTimeout:
			return audit.Timeout, "timeout", exitTimeout
		}
		return audit.Error, "tool_error", exitToolError
	}
	f := classify(ctx, err)
	switch f.word {
	case "denied", "needs_approval":
		return audit.Denied, f.word, f.exit
	case "invalid_params":
		return audit.Invalid, f.word, f.exit
	case "timeout":
		return audit.Timeout, f.word, f.exit
	case "interrupted":
		return audit.Cancelled, f.word, f.exit
	}
	if errors.Is(err, context.Canceled) || ctx.Err() != nil {
		return audit.Cancelled, f.word, f.exit
	}
	return audit.Error, f.word, f.exit
}
