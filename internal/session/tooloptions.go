package session

import (
	"fmt"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/middleware"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// toolOptions is the combination of all matching entries of the setting
// toolOptions. Fields that are not set are nil.
type toolOptions struct {
	timeout, retryDelay, cache *time.Duration
	maxOutput                  *int64
	retries                    *int
	log                        string
	named                      bool // whether an entry names the tool exactly, not by a glob
}

// optionsOf returns the options of a tool, which entries may refer to by any of
// its names.
func optionsOf(set *settings.Settings, t *registry.Tool) toolOptions {
	var out toolOptions
	for i := range set.ToolOptions {
		o := &set.ToolOptions[i]
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

func valueOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func (r *run) limitOutput(t registry.Tool) registry.Tool {
	o := middleware.Output{Limit: r.set.Limits.Output, Spill: r.set.Limits.Spill, Dir: func() (*state.Dir, error) { return r.deps.Folders.Cache("output") }}
	if m := optionsOf(r.set, &t).maxOutput; m != nil {
		o.Limit = *m
	}
	if r.opts.Uncut {
		o.Limit = 0
	}
	return o.Wrap(t)
}

func (r *run) cacheResults(t registry.Tool) registry.Tool {
	o := optionsOf(r.set, &t)
	if valueOf(o.cache) <= 0 {
		return t
	}
	if !middleware.ReadOnly(&t) {
		r.optionIgnored(&t, o, "cache", "only results of read-only tools are cached")
		return t
	}
	dir, err := r.deps.Folders.Cache("results")
	if err != nil {
		r.resultNotCached(err)
		return t
	}
	scope := strings.Join([]string{r.set.ProjectRoot, r.set.Workspace, r.set.Globals.Channel}, "\x00")
	return middleware.Cache{Dir: dir, TTL: *o.cache, Renew: r.opts.Cache == cache.Renew, Scope: scope, Failed: r.resultNotCached}.Wrap(t)
}

func (r *run) resultNotCached(err error) {
	r.warn("cache_not_kept", "", "results cannot be cached: "+err.Error(), "")
}

func (r *run) retryCalls(t registry.Tool) registry.Tool {
	o := optionsOf(r.set, &t)
	if valueOf(o.retries) <= 0 {
		return t
	}
	if !middleware.Repeatable(&t) {
		r.optionIgnored(&t, o, "retries", "a call that changes something is never retried")
		return t
	}
	return middleware.Retry{Retries: *o.retries, Delay: valueOf(o.retryDelay)}.Wrap(t)
}

// optionIgnored warns about an option that names a tool but does not apply to
// it. For a glob that is not a mistake.
func (r *run) optionIgnored(t *registry.Tool, o toolOptions, key, why string) {
	if !o.named {
		return
	}
	r.deps.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "option_ignored", Source: t.Source, Tool: t.Name,
		Message: fmt.Sprintf("the option %s of %q is ignored: %s", key, t.Name, why),
		Hint:    "it applies to tools of category read, and to those that a server with trust: true declares read-only or idempotent"})
}
