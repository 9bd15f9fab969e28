package engine

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/middleware"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
)

// toolSettings is the combination of all entries of toolOptions that match a tool; its
// pattern is empty.
type toolSettings struct {
	settings.ToolOption
	Named bool // whether an entry names the tool exactly, not by a glob
}

// toolSettingsOf returns the options of a tool, which entries may refer to by any of its
// names.
func toolSettingsOf(set *settings.Settings, t *registry.Tool) toolSettings {
	var out toolSettings
	for i := range set.ToolOptions {
		o := &set.ToolOptions[i]
		if !matchesAny(o.Pattern, t) {
			continue
		}
		out.Named = out.Named || !strings.ContainsAny(o.Pattern, "*?[")
		out.Timeout = cmp.Or(o.Timeout, out.Timeout)
		out.RetryDelay = cmp.Or(o.RetryDelay, out.RetryDelay)
		out.Cache = cmp.Or(o.Cache, out.Cache)
		out.MaxOutput = cmp.Or(o.MaxOutput, out.MaxOutput)
		out.Retries = cmp.Or(o.Retries, out.Retries)
		out.Log = cmp.Or(o.Log, out.Log)
	}
	return out
}

func matchesAny(pattern string, t *registry.Tool) bool {
	if text.MatchName(pattern, t.Name) {
		return true
	}
	for _, name := range t.Spellings() {
		if text.MatchName(pattern, name) {
			return true
		}
	}
	return false
}

func valueOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// toolRuns wraps tools in the middleware that the settings configure.
type toolRuns struct {
	Settings *settings.Settings
	Folders  *state.Folders
	Uncut    bool // do not shorten results
	Renew    bool // do not use cached results
	Warn     func(registry.Diagnostic)
}

// Around returns the middleware of a tool, outermost first.
func (r *toolRuns) Around() []registry.Middleware {
	return []registry.Middleware{r.LimitOutput, r.cacheResults, r.projectResults, r.retryCalls}
}

// TimeLimit returns the time limit of a tool: 0 if no setting has one for it, -1
// for no limit.
func (r *toolRuns) TimeLimit(t *registry.Tool) time.Duration {
	d := toolSettingsOf(r.Settings, t).Timeout
	if d != nil && *d == 0 {
		return -1
	}
	return valueOf(d)
}

// LimitOutput shortens the results of a tool.
func (r *toolRuns) LimitOutput(t registry.Tool) registry.Tool {
	o := middleware.Output{Limit: r.Settings.Limits.Output, Spill: r.Settings.Limits.Spill, Dir: r.outputs}
	if m := toolSettingsOf(r.Settings, &t).MaxOutput; m != nil {
		o.Limit = *m
	}
	if r.Uncut {
		o.Limit = 0
	}
	return o.Wrap(t)
}

func (r *toolRuns) cacheResults(t registry.Tool) registry.Tool {
	o := toolSettingsOf(r.Settings, &t)
	if valueOf(o.Cache) <= 0 {
		return t
	}
	if !middleware.ReadOnly(&t) {
		r.optionIgnored(&t, o, "cache", "only results of read-only tools are cached")
		return t
	}
	dir, err := r.Folders.Cache("results")
	if err != nil {
		r.resultNotCached(err)
		return t
	}
	scope := strings.Join([]string{r.Settings.ProjectRoot, r.Settings.Workspace, r.Settings.Globals.Channel}, "\x00")
	return middleware.Cache{Dir: dir, TTL: *o.Cache, Renew: r.Renew, Scope: scope, Failed: r.resultNotCached}.Wrap(t)
}

func (r *toolRuns) resultNotCached(err error) {
	r.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "cache_not_kept", Message: "results cannot be cached: " + err.Error()})
}

func (r *toolRuns) retryCalls(t registry.Tool) registry.Tool {
	o := toolSettingsOf(r.Settings, &t)
	if valueOf(o.Retries) <= 0 {
		return t
	}
	if !middleware.Repeatable(&t) {
		r.optionIgnored(&t, o, "retries", "a call that changes something is never retried")
		return t
	}
	return middleware.Retry{Retries: *o.Retries, Delay: valueOf(o.RetryDelay)}.Wrap(t)
}

// optionIgnored warns about an option that names a tool but does not apply to
// it. For a glob that is not a mistake.
func (r *toolRuns) optionIgnored(t *registry.Tool, o toolSettings, key, why string) {
	if !o.Named {
		return
	}
	hint := "it applies to tools of category read, and to those that a server with trust: true declares read-only or idempotent"
	if t.Source == registry.SourceComposite {
		hint = "a composite is not read-only, whatever its category; set the option for the tools of its steps"
	}
	r.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "option_ignored", Source: t.Source, Tool: t.Name,
		Message: fmt.Sprintf("the option %s of %q is ignored: %s", key, t.Name, why), Hint: hint})
}

// outputs returns the folder for results that are too long.
func (r *toolRuns) outputs() (*state.Dir, error) { return r.Folders.Cache("output") }
