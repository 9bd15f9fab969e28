package engine

import (
	"cmp"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
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
	for i := range set.APIs {
		if t.Source == registry.APIPrefix+set.APIs[i].Name {
			out.MaxOutput = set.APIs[i].MaxOutput
		}
	}
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
