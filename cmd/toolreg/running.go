package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/hooks"
	"github.com/toolreg/toolreg/internal/middleware"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// surround puts around every call of an executor what the settings say, from
// the outside in: hooks, audit, limit on output, cache, retries, time limit
// (spec section 8.6).
func (a *app) surround(ctx context.Context, s *settings.Settings, x *exec.Executor) error {
	set, err := a.hooks(ctx, s)
	if err != nil {
		return err
	}
	if set != nil {
		x.Hooks = set
	}
	if s.Audit.Enabled {
		log, err := a.auditLog(s)
		x.Observe = func(ctx context.Context, r exec.Record) { a.observeCall(ctx, r, log, err) }
	}
	x.Limits = func(t *registry.Tool) time.Duration {
		d := optionsOf(s, t).timeout
		if d != nil && *d == 0 {
			return -1 // "no limit"
		}
		return orZero(d)
	}
	x.Wrap = []registry.Middleware{a.limitOutput(s), a.cacheResults(s), a.retryCalls(s)}
	return nil
}

// toolOptions is what all matching entries of the setting toolOptions make
// together; nil fields are not set.
type toolOptions struct {
	timeout, retryDelay, cache *time.Duration
	maxOutput                  *int64
	retries                    *int
	log                        string
	named                      bool // by its very name, not by a glob
}

// optionsOf looks the options of a tool up, by any of its names.
func optionsOf(s *settings.Settings, t *registry.Tool) toolOptions {
	var out toolOptions
	for i := range s.ToolOptions {
		o := &s.ToolOptions[i]
		if !matchesAny(o.Pattern, t) {
			continue
		}
		out.named = out.named || !strings.ContainsAny(o.Pattern, "*?[")
		setIf(&out.timeout, o.Timeout)
		setIf(&out.retryDelay, o.RetryDelay)
		setIf(&out.cache, o.Cache)
		setIf(&out.maxOutput, o.MaxOutput)
		setIf(&out.retries, o.Retries)
		if o.Log != "" {
			out.log = o.Log
		}
	}
	return out
}

func matchesAny(pattern string, t *registry.Tool) bool {
	if registry.MatchName(pattern, t.Name) {
		return true
	}
	for _, name := range t.Spellings() {
		if registry.MatchName(pattern, name) {
			return true
		}
	}
	return false
}

func setIf[T any](to **T, from *T) {
	if from != nil {
		*to = from
	}
}

func orZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func (a *app) limitOutput(s *settings.Settings) registry.Middleware {
	return func(t registry.Tool) registry.Tool {
		o := middleware.Output{Limit: s.Limits.Output, Spill: s.Limits.Spill, Dir: func() (*state.Dir, error) { return a.cacheDir("output") }}
		if m := optionsOf(s, &t).maxOutput; m != nil {
			o.Limit = *m
		}
		if a.whole {
			o.Limit = 0
		}
		return o.Wrap(t)
	}
}

func (a *app) cacheResults(s *settings.Settings) registry.Middleware {
	return func(t registry.Tool) registry.Tool {
		o := optionsOf(s, &t)
		if orZero(o.cache) <= 0 {
			return t
		}
		if !middleware.ReadOnly(&t) {
			a.unsafeOption(&t, o, "cache", "only results of tools that read are kept")
			return t
		}
		dir, err := a.cacheDir("results")
		if err != nil {
			a.cacheFailed(err)
			return t
		}
		scope := strings.Join([]string{s.ProjectRoot, s.Workspace, s.Globals.Channel}, "\x00")
		return middleware.Cache{Dir: dir, TTL: *o.cache, Scope: scope, Failed: a.cacheFailed}.Wrap(t)
	}
}

func (a *app) cacheFailed(err error) {
	a.warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "cache_not_kept", Message: "results cannot be kept: " + err.Error()})
}

func (a *app) retryCalls(s *settings.Settings) registry.Middleware {
	return func(t registry.Tool) registry.Tool {
		o := optionsOf(s, &t)
		if orZero(o.retries) <= 0 {
			return t
		}
		if !middleware.Repeatable(&t) {
			a.unsafeOption(&t, o, "retries", "a call that changes something is never made twice")
			return t
		}
		return middleware.Retry{Retries: *o.retries, Delay: orZero(o.retryDelay)}.Wrap(t)
	}
}

// unsafeOption tells that an option that names a tool does not count for it. A
// glob may well hold tools that it is not meant for.
func (a *app) unsafeOption(t *registry.Tool, o toolOptions, key, why string) {
	if !o.named {
		return
	}
	a.warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "option_ignored", Source: t.Source, Tool: t.Name,
		Message: fmt.Sprintf("the option %s of %q does not count: %s", key, t.Name, why),
		Hint:    "it counts for tools of category read, and for those that a server with trust: true calls read-only or idempotent"})
}

// cacheDir opens a folder for what can be lost at any time.
func (a *app) cacheDir(name string) (*state.Dir, error) {
	base, err := state.DefaultCacheDir(a.environ)
	if err != nil {
		return nil, err
	}
	if _, err := state.OpenDir(base); err != nil {
		return nil, err
	}
	return state.OpenDir(filepath.Join(base, name))
}

// hooks reads the setting hooks of all places; nil where there are none.
func (a *app) hooks(ctx context.Context, s *settings.Settings) (*hooks.Set, error) {
	var all []hooks.Hook
	var origins []settings.Origin
	for place, raw := range s.RawEach("hooks") {
		found, unknown, err := hooks.Parse(raw.JSON)
		if err != nil {
			return nil, &usageError{err: fmt.Errorf("%s: %w", raw.Origin, err), hint: "see docs/running.md"}
		}
		for _, name := range unknown {
			a.warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "hook_unknown", Message: fmt.Sprintf("%s: hooks.%s is no hook of toolreg", raw.Origin, name),
				Hint: "the hooks are beforeCall, afterCall, onRegister and onDiagnostic"})
		}
		for i := range found {
			found[i].Place, found[i].Origin = place, raw.Origin.String()
		}
		all, origins = append(all, found...), append(origins, raw.Origin)
	}
	if len(all) == 0 {
		return nil, nil
	}
	x := settings.NewExpander(s.ProjectRoot, a.environ)
	env, envErr := a.toolEnviron(ctx, s, x)
	return &hooks.Set{Hooks: all, Dir: s.ProjectRoot, Env: append(env, "TOOLREG_PROJECT_ROOT="+s.ProjectRoot),
		Expand: func(h *hooks.Hook) ([]string, error) {
			if envErr != nil {
				return nil, envErr
			}
			return hookCommand(x, h, origins[h.Place])
		}}, nil
}

// hookCommand expands a hook's command. A program that the system's or the
// user's settings name by a relative path is beside those settings: hooks run in
// the project, which must not be able to put something in its place.
func hookCommand(x *settings.Expander, h *hooks.Hook, origin settings.Origin) ([]string, error) {
	argv, err := x.Command(settings.Command{Argv: h.Command, Origin: origin})
	if err != nil {
		return nil, err
	}
	own := origin.Scope == settings.ScopeUser || origin.Scope == settings.ScopeSystem
	if own && strings.ContainsRune(filepath.ToSlash(argv[0]), '/') && !filepath.IsAbs(argv[0]) {
		argv[0] = filepath.Join(filepath.Dir(origin.Name), argv[0])
	}
	return argv, nil
}

// announce tells the hooks which tools there are and what was noticed.
func (a *app) announce(ctx context.Context, reg *registry.Registry) error {
	set, err := a.hooks(ctx, a.set)
	if err != nil || set == nil || !a.announced.CompareAndSwap(false, true) {
		return err
	}
	if err := errors.Join(set.Registered(ctx, reg.Tools()), set.Noticed(ctx, a.noticed(reg))); err != nil {
		a.warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "hook_failed", Message: err.Error()})
	}
	return nil
}

// auditLog returns the log, one for all of a run; an error means that there is no
// place for it, and comes with nil.
func (a *app) auditLog(s *settings.Settings) (*audit.Log, error) {
	d, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	a.logging.Lock()
	defer a.logging.Unlock()
	if a.audit == nil {
		a.audit = &audit.Log{Dir: d, MaxSize: s.Audit.MaxSize, Keep: s.Audit.Keep}
	}
	return a.audit, nil
}

// closeAudit closes the log, if anything was added.
func (a *app) closeAudit() {
	a.logging.Lock()
	defer a.logging.Unlock()
	if a.audit != nil {
		if err := a.audit.Close(); err != nil {
			a.log.Debug("closing the audit log", "err", err)
		}
	}
}

// shellOutput is what run_shell_command keeps of stdout and of stderr: half of
// the limit each, so that its report is not cut a second time.
func shellOutput(s *settings.Settings) int64 {
	limit := s.Limits.Output
	for i := range s.ToolOptions {
		if o := &s.ToolOptions[i]; o.MaxOutput != nil && matchesAny(o.Pattern, &registry.Tool{Definition: registry.Definition{Name: "run_shell_command", Aliases: []string{"bash", "exec"}}}) {
			limit = *o.MaxOutput
		}
	}
	const labels = 1 << 10 // the lines of the report beside the output
	return max(limit/2-labels, limit/4, 1)
}
