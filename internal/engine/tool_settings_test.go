package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

func TestOptionsOfATool(t *testing.T) {
	second, minute, two, six, size := time.Second, time.Minute, 2, 6, int64(5)
	s := &settings.Settings{ToolOptions: []settings.ToolOption{
		{Pattern: "*", Timeout: &second, Retries: &two, Log: settings.LogNone},
		{Pattern: "git__l*", Timeout: &minute},
		{Pattern: "log", Retries: &six, Log: settings.LogParams},
		{Pattern: "other", MaxOutput: &size},
	}}
	tool := &registry.Tool{Definition: registry.Definition{Name: "log", Source: "mcp:git", Server: "git", ServerTool: "log"}}
	got := toolSettingsOf(s, tool)
	want := toolSettings{settings.ToolOption{Timeout: &minute, Retries: &six, Log: settings.LogParams}, true, false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A project caches results no longer than other scopes do, and those of built-in tools only then.
func TestProjectDoesNotLengthenTheCache(t *testing.T) {
	second, minute, none := time.Second, time.Minute, time.Duration(0)
	option := func(pattern string, cache *time.Duration, scope settings.Scope) settings.ToolOption {
		return settings.ToolOption{Pattern: pattern, Cache: cache, Origin: settings.Origin{Scope: scope}}
	}
	for name, tt := range map[string]struct {
		source    string
		own       *time.Duration
		all       settings.ToolOption
		want      time.Duration
		shortened bool
	}{
		"nobody else":          {"mcp:s", nil, option("grep", &minute, settings.ScopeProject), minute, false},
		"a built-in tool":      {"builtin", nil, option("grep", &minute, settings.ScopeProject), 0, true},
		"a longer one":         {"mcp:s", &second, option("grep", &minute, settings.ScopeProject), second, true},
		"a longer, built-in":   {"builtin", &second, option("g*", &minute, settings.ScopeProject), second, true},
		"a shorter one":        {"builtin", &minute, option("grep", &second, settings.ScopeProject), second, false},
		"switched off":         {"mcp:s", &none, option("grep", &minute, settings.ScopeProject), 0, true},
		"a file of --settings": {"builtin", &second, option("grep", &minute, settings.ScopeFile), minute, false},
	} {
		s := &settings.Settings{ToolOptions: []settings.ToolOption{tt.all}, OwnToolOptions: []settings.ToolOption{option("*", tt.own, settings.ScopeUser)}}
		got := toolSettingsOf(s, &registry.Tool{Definition: registry.Definition{Name: "grep", Source: tt.source}})
		if valueOf(got.Cache) != tt.want || got.Shortened != tt.shortened {
			t.Errorf("%s: %v, shortened: %t", name, valueOf(got.Cache), got.Shortened)
		}
	}
}
