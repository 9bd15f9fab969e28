package engine

import (
	"cmp"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// toolSettings is the combination of all entries of toolOptions that match a tool; its
// pattern is empty.
type toolSettings struct {
	settings.ToolOption
	Named bool // whether an entry names the tool exactly, not by a glob
	// Shortened is set if the project asks for a longer cache than it may have.
	Shortened bool
}

// toolSettingsOf returns the options of a tool, which entries may refer to by any of its
// names.
func toolSettingsOf(set *settings.Settings, t *registry.Tool) toolSettings {
	var out toolSettings
	for i := range set.APIs {
		if t.Source == registry.APIPrefix+set.APIs[i].Name {
			out.MaxOutput = set.APIs[i].MaxOutput
		}
	}
	byProject := false
	for i := range set.ToolOptions {
		o := &set.ToolOptions[i]
		if !matchesAny(o.Pattern, t) {
			continue
		}
		out.Named = out.Named || !strings.ContainsAny(o.Pattern, "*?[")
		out.Timeout = cmp.Or(o.Timeout, out.Timeout)
		out.RetryDelay = cmp.Or(o.RetryDelay, out.RetryDelay)
		if o.Cache != nil {
			out.Cache, byProject = o.Cache, o.Origin.Scope == settings.ScopeProject
		}
		out.MaxOutput = cmp.Or(o.MaxOutput, out.MaxOutput)
		out.Retries = cmp.Or(o.Retries, out.Retries)
		out.Log = cmp.Or(o.Log, out.Log)
	}
	if byProject {
		if limit := ownCache(set, t); limit != nil && *limit < *out.Cache {
			out.Cache, out.Shortened = limit, true
		}
	}
	return out
}

// ownCache returns how long a project may cache the results of a tool: as long as other scopes
// do. If they say nothing, there is no limit, but for built-in tools, whose results depend on the
// person's own files and rules.
func ownCache(set *settings.Settings, t *registry.Tool) (limit *time.Duration) {
	if t.Source == registry.SourceBuiltin {
		limit = new(time.Duration)
	}
	for i := range set.OwnToolOptions {
		if o := &set.OwnToolOptions[i]; o.Cache != nil && matchesAny(o.Pattern, t) {
			limit = o.Cache
		}
	}
	return limit
}

func matchesAny(pattern string, t *registry.Tool) bool {
	pattern = registry.NameIn(pattern)
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
