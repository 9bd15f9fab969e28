package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/engine/record"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/middleware"
	"github.com/toolreg/toolreg/internal/overrides"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// toolRuns wraps tools in the middleware that the settings configure.
type toolRuns struct {
	outputs
	logins  *sources.Logins // part of the keys of cached results
	uncut   bool            // see [Options.Uncut]
	renew   bool            // do not use cached results
	reports *reports
}

// TimeLimit returns the time limit of a tool: the flag's, or else that of its options. Zero means
// that neither is set, and a negative value that there is no limit.
func (r *toolRuns) TimeLimit(t *registry.Tool) time.Duration {
	set := r.programs.Settings
	limit := set.OptionsOf(t).Timeout
	if set.Globals.TimeoutSet {
		limit = &set.Globals.Timeout
	}
	if limit != nil && *limit == 0 {
		return -1
	}
	return valueOf(limit)
}

// LimitOutput shortens the results of a tool.
func (r *toolRuns) LimitOutput(t registry.Tool) registry.Tool {
	o := r.cut(r.programs.Settings.Limits.Output)
	if m := r.programs.Settings.OptionsOf(&t).MaxOutput; m != nil {
		o.Limit = *m
	}
	if r.uncut {
		o.Limit = 0
	}
	whole := t.Run
	t = o.Wrap(t)
	cut := t.Run
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		if record.InScript(ctx) { // only what leaves the script is cut
			return whole(ctx, call)
		}
		return cut(ctx, call)
	}
	return t
}

// Answer shortens a result of a tool for a model (limits.answer). A tool with maxOutput has
// its own limit.
func (r *toolRuns) Answer(ctx context.Context, t *registry.Tool, result registry.Result) registry.Result {
	if r.uncut || r.programs.Settings.OptionsOf(t).MaxOutput != nil {
		return result
	}
	return r.cut(r.programs.Settings.Limits.Answer).Answer(ctx, t.Name, result)
}

func (r *toolRuns) cacheResults(t registry.Tool) registry.Tool {
	o := r.programs.Settings.OptionsOf(&t)
	if o.Shortened && o.Named {
		r.reports.add(registry.Diagnostic{Severity: registry.SeverityWarning,
			Code: "option_ignored", Source: t.Source, Tool: t.Name,
			Message: fmt.Sprintf(
				"results of %q are cached for %s: a project cannot cache them longer than other settings do",
				t.Name, valueOf(o.Cache)),
			Hint: "set cache in your own toolOptions"})
	}
	if valueOf(o.Cache) <= 0 {
		return t
	}
	if !middleware.ReadOnly(&t) {
		r.optionIgnored(&t, o, "cache", "only results of read-only tools are cached")
		return t
	}
	dir, err := r.programs.Folders.Cache("results")
	if err != nil {
		r.resultNotCached(err)
		return t
	}
	set := r.programs.Settings
	scope := strings.Join([]string{set.ProjectRoot, set.Workspace, r.outputs.facts.Text("channel")}, "\x00")
	return middleware.Cache{
		Dir: dir, TTL: *o.Cache, Renew: r.renew, Scope: scope, Now: time.Now, Credentials: r.logins.Credentials,
		Key: r.cacheKey, Failed: r.resultNotCached,
	}.Wrap(t)
}

// cacheKey returns the key for the hashes in the names of cached results.
func (r *toolRuns) cacheKey(ctx context.Context) ([]byte, error) {
	d, err := r.programs.Folders.State()
	if err != nil {
		return nil, err
	}
	return d.Key(ctx)
}

func (r *toolRuns) resultNotCached(err error) {
	if errors.Is(err, sources.ErrPerClient) {
		return
	}
	r.reports.add(registry.Warning("cache_not_kept", "", "results cannot be cached: "+err.Error(), ""))
}

func (r *toolRuns) retryCalls(t registry.Tool) registry.Tool {
	o := r.programs.Settings.OptionsOf(&t)
	if valueOf(o.Retries) <= 0 {
		return t
	}
	if !middleware.Repeatable(&t) {
		r.optionIgnored(&t, o, "retries", "a call that changes something is never retried")
		return t
	}
	return middleware.Retry{Retries: *o.Retries, Delay: valueOf(o.RetryDelay)}.Wrap(t)
}

// projectResults reduces the results of a tool to what its override selects. If that fails, the
// call fails, and the original result is written to a file.
func (r *toolRuns) projectResults(t registry.Tool) registry.Tool {
	if t.Project == nil {
		return t
	}
	inner := t.Run
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		call.Emit, call.Keep, call.Spill = nil, 0, nil // the expression needs the whole result
		whole, err := inner(ctx, call)
		if err != nil {
			return whole, err
		}
		result, err := t.Project(ctx, whole)
		if err != nil {
			return r.unprojected(ctx, &t, whole, err), nil
		}
		result.SavedTokens = max(tokensOf(whole)-tokensOf(result), 0)
		return result, nil
	}
	return t
}

// unprojected returns the failure of a call whose result cannot be reduced.
func (r *toolRuns) unprojected(ctx context.Context, t *registry.Tool,
	whole registry.Result, failure error) registry.Result {
	note := "the unchanged result cannot be saved"
	if raw, err := overrides.Raw(whole); err == nil {
		if path, err := r.cut(0).Save(ctx, t.Name, raw); err == nil {
			note = "the unchanged result is in " + path
		}
	}
	out := registry.ErrorResult(registry.ErrorExecution, fmt.Sprintf("%v (%s); %s", failure, t.Reshaped.Origin, note))
	out.Duration, out.Attempts, out.Asked, out.Confined = whole.Duration, whole.Attempts, whole.Asked, whole.Confined
	return out
}

// tokensOf estimates the tokens of a result.
func tokensOf(r registry.Result) int {
	text := []byte(r.Text())
	if len(r.Content) == 0 {
		text = r.Structured
	}
	return provider.Format{}.Tokens(text) // for any model
}

// optionIgnored warns about an option that names a tool but does not apply to it. A glob may match
// such tools without a warning.
func (r *toolRuns) optionIgnored(t *registry.Tool, o settings.ToolOptions, key, why string) {
	if !o.Named {
		return
	}
	hint := "it applies to tools of category read, and to those that a server with trust: true declares read-only or idempotent"
	if t.Source == registry.SourceComposite {
		hint = "a composite is not read-only, whatever its category; set the option for the tools of its steps"
	}
	r.reports.add(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "option_ignored", Source: t.Source,
		Tool: t.Name, Message: fmt.Sprintf("the option %s of %q is ignored: %s", key, t.Name, why), Hint: hint})
}

// outputs writes the whole of shortened results to files.
type outputs struct {
	programs *programs.Set
	facts    programs.Facts
}

func (o outputs) folder() (*state.Dir, error) { return o.programs.Folders.Cache(state.OutputName) }

// cut returns the middleware options that shorten results to a limit.
func (o outputs) cut(limit int64) middleware.Output {
	return middleware.Output{Limit: limit, Spill: o.programs.Settings.Limits.Spill, Dir: o.folder, Mark: o.mark}
}

// mark identifies the session in the names of those files: the workspace, the session key and the
// client.
func (o outputs) mark(ctx context.Context) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{o.programs.Settings.Workspace,
		o.facts.Text("sessionKey"), caller.Name(ctx)}, "\x00")))
	return hex.EncodeToString(sum[:5])
}

// Folder returns, for read_file, the folder of the files with whole results.
func (o outputs) Folder() string {
	dir, err := o.folder()
	if err != nil {
		return ""
	}
	return dir.Path
}

// May reports, for read_file, whether a call may read a file of that folder. It may read the
// results of its own session.
func (o outputs) May(ctx context.Context, path string) bool {
	return strings.Contains(filepath.Base(path), "-"+o.mark(ctx)+"-")
}

func valueOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
