package settings

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/text"
)

// Audit configures the log of calls.
type Audit struct {
	Enabled bool  `setting:"audit.enabled"` // default true
	MaxSize int64 `setting:"audit.maxSize"` // maximum size of one log in bytes; default 10 MiB
	Keep    int   `setting:"audit.keep"`    // number of rotated logs to keep; default 5
}

// The values of a tool's option log.
const (
	LogCalls  = "calls"  // the default: without the values of params
	LogParams = "params" // with the values of params
	LogNone   = "none"   // only refusals
)

// ToolOption is one entry of toolOptions: options for the tools whose name matches
// the pattern. A nil field is not set.
type ToolOption struct {
	Pattern    string         `setting:"*"` // a tool's name, or a glob
	Timeout    *time.Duration `setting:"timeout"`
	MaxOutput  *int64         `setting:"maxOutput"` // bytes
	Retries    *int           `setting:"retries"`
	RetryDelay *time.Duration `setting:"retryDelay"`
	Cache      *time.Duration `setting:"cache"`
	Log        string         `setting:"log"` // LogCalls, LogParams, LogNone; "" means not set
	Origin     Origin
}

// Hook is an entry of one of the lists in hooks: a command that runs around calls.
type Hook struct {
	Event   string        // beforeCall, afterCall, onRegister, onDiagnostic
	Command Command       `setting:"command"`
	Tools   []string      `setting:"tools"` // names or globs; empty means all
	Timeout time.Duration `setting:"timeout"`
	Layer   int           // of its file; files are read in the order of their layers
	Origin  Origin
}

// hooks returns the hooks of all scopes, those of one file in the order of the events.
func hooks(m *merge.Merged) []Hook {
	var out []Hook
	row := m.Index.Row("hooks")
	for _, e := range m.Of(row) {
		for i := range row.Fields {
			event, from := &row.Fields[i], len(out)
			if list := e.Value.Get(event.Name); list != nil {
				set(reflect.ValueOf(&out).Elem(), event, list, e.Origin)
			}
			for j := from; j < len(out); j++ {
				out[j].Event, out[j].Layer = event.Name, e.Layer
			}
		}
	}
	return out
}

// ownToolOptions returns the options without those of the project, if it has any.
func ownToolOptions(m *merge.Merged) (out []ToolOption) {
	row := m.Index.Row("toolOptions")
	own := m.Without(func(e layers.Setting) bool { return e.Row == row && e.Origin.Scope == ScopeProject })
	if own != m {
		setField(own, reflect.ValueOf(&out).Elem(), row)
	}
	return out
}

// ToolOptions is the combination of all entries of toolOptions that match a tool; its
// pattern is empty.
type ToolOptions struct {
	ToolOption
	Named bool // whether an entry names the tool exactly, not by a glob
	// Shortened is set if the project asks for a longer cache than it may have.
	Shortened bool
}

// OptionsOf returns the options of a tool, which entries may refer to by any of its
// names.
func (s *Settings) OptionsOf(t *registry.Tool) ToolOptions {
	var out ToolOptions
	if name, isAPI := strings.CutPrefix(t.Source, registry.APIPrefix); isAPI && s.API(name) != nil {
		out.MaxOutput = s.API(name).MaxOutput
	}
	byProject := false
	for i := range s.ToolOptions {
		o := &s.ToolOptions[i]
		if !o.matches(t) {
			continue
		}
		out.Named = out.Named || !strings.ContainsAny(o.Pattern, "*?[")
		out.Timeout = cmp.Or(o.Timeout, out.Timeout)
		out.RetryDelay = cmp.Or(o.RetryDelay, out.RetryDelay)
		if o.Cache != nil {
			out.Cache, byProject = o.Cache, o.Origin.Scope == ScopeProject
		}
		out.MaxOutput = cmp.Or(o.MaxOutput, out.MaxOutput)
		out.Retries = cmp.Or(o.Retries, out.Retries)
		out.Log = cmp.Or(o.Log, out.Log)
	}
	if byProject {
		if limit := s.ownCache(t); limit != nil && *limit < *out.Cache {
			out.Cache, out.Shortened = limit, true
		}
	}
	return out
}

// ownCache returns how long a project may cache the results of a tool: as long as other scopes
// do. If they say nothing, there is no limit, but for built-in tools, whose results depend on the
// person's own files and rules.
func (s *Settings) ownCache(t *registry.Tool) (limit *time.Duration) {
	if t.Source == registry.SourceBuiltin {
		limit = new(time.Duration)
	}
	for i := range s.OwnToolOptions {
		if o := &s.OwnToolOptions[i]; o.Cache != nil && o.matches(t) {
			limit = o.Cache
		}
	}
	return limit
}

// matches reports whether the pattern matches one of the names of a tool.
func (o *ToolOption) matches(t *registry.Tool) bool {
	pattern := registry.NameIn(o.Pattern)
	matches := func(name string) bool { return text.MatchName(pattern, name) }
	return matches(t.Name) || slices.ContainsFunc(t.Spellings(), matches)
}

// Silence is an entry of check.silence: findings of servers check that are accepted.
type Silence struct {
	Rule   string `setting:"rule"`
	Reason string `setting:"reason"`
	Server string `setting:"server"` // a name or glob; "" means all
	Tool   string `setting:"tool"`   // a name or glob of tools, prompts or resources; "" means all
	Origin Origin
}
