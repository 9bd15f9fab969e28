package settings

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

func TestOptionsOfATool(t *testing.T) {
	second, minute, two, six, size := time.Second, time.Minute, 2, 6, int64(5)
	s := &Settings{ToolOptions: []ToolOption{
		{Pattern: "*", Timeout: &second, Retries: &two, Log: LogNone},
		{Pattern: "git__l*", Timeout: &minute},
		{Pattern: "log", Retries: &six, Log: LogParams},
		{Pattern: "other", MaxOutput: &size},
	}}
	tool := &registry.Tool{Definition: registry.Definition{Name: "log", Source: "mcp:git", Server: "git", ServerTool: "log"}}
	got := s.OptionsOf(tool)
	want := ToolOptions{ToolOption: ToolOption{Timeout: &minute, Retries: &six, Log: LogParams}, Named: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A project caches results no longer than other scopes do, and those of built-in tools only then.
func TestProjectDoesNotLengthenTheCache(t *testing.T) {
	second, minute, none := time.Second, time.Minute, time.Duration(0)
	option := func(pattern string, cache *time.Duration, scope Scope) ToolOption {
		return ToolOption{Pattern: pattern, Cache: cache, Origin: Origin{Scope: scope}}
	}
	for name, tt := range map[string]struct {
		source    string
		own       *time.Duration
		all       ToolOption
		want      time.Duration
		shortened bool
	}{
		"nobody else":          {"mcp:s", nil, option("grep", &minute, ScopeProject), minute, false},
		"a built-in tool":      {"builtin", nil, option("grep", &minute, ScopeProject), 0, true},
		"a longer one":         {"mcp:s", &second, option("grep", &minute, ScopeProject), second, true},
		"a longer, built-in":   {"builtin", &second, option("g*", &minute, ScopeProject), second, true},
		"a shorter one":        {"builtin", &minute, option("grep", &second, ScopeProject), second, false},
		"switched off":         {"mcp:s", &none, option("grep", &minute, ScopeProject), 0, true},
		"a file of --settings": {"builtin", &second, option("grep", &minute, ScopeFile), minute, false},
	} {
		s := &Settings{ToolOptions: []ToolOption{tt.all}, OwnToolOptions: []ToolOption{option("*", tt.own, ScopeUser)}}
		got := s.OptionsOf(&registry.Tool{Definition: registry.Definition{Name: "grep", Source: tt.source}})
		if *got.Cache != tt.want || got.Shortened != tt.shortened {
			t.Errorf("%s: %v, shortened: %t", name, *got.Cache, got.Shortened)
		}
	}
}
