package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

func TestSelection(t *testing.T) {
	tools := []*registry.Tool{
		{Definition: registry.Definition{Name: "read_file", Source: "builtin", Category: "read", Tags: []string{"files"}}},
		{Definition: registry.Definition{Name: "greet", Source: "plugin:p", Plugin: "p", Category: "other", Optional: true}},
		{Definition: registry.Definition{Name: "echo", Source: "mcp:s", Server: "s", Category: "network"}},
		{Definition: registry.Definition{Name: "made", Source: "command", Category: "own"}},
	}
	hidden := []registry.Hidden{{Name: "read_file", Source: "builtin"}, {Name: "greet", Source: "plugin:p"}, {Name: "echo", Source: "mcp:s"}, {Name: "made", Source: "command"}}
	for _, tt := range []struct {
		name     string
		s        Selection
		want     string
		hidden   string // hidden tools have neither category nor tag
		narrows  bool
		server   bool // tools of server s can match
		noServer bool // no server has to be started
	}{
		{"everything", Selection{}, "read_file greet echo made", "read_file greet echo made", false, true, false},
		{"a source", Selection{Filters: Filters{Source: Words{"builtin"}}}, "read_file", "read_file", true, false, true},
		{"a glob of sources", Selection{Filters: Filters{Source: Words{"mcp:*"}}}, "echo", "echo", true, true, false},
		{"a server's source", Selection{Filters: Filters{Source: Words{"mcp:s"}}}, "echo", "echo", true, true, false},
		{"another server's source", Selection{Filters: Filters{Source: Words{"mcp:x"}}}, "", "", true, false, false},
		{"a plugin's source", Selection{Filters: Filters{Source: Words{"plugin:p"}}}, "greet", "greet", true, false, true},
		{"a server", Selection{Filters: Filters{Server: Words{"s"}}}, "echo", "echo", true, true, false},
		{"a glob of servers", Selection{Filters: Filters{Server: Words{"*"}}}, "echo", "echo", true, true, false},
		{"a plugin", Selection{Filters: Filters{Plugin: Words{"p"}}}, "greet", "greet", true, false, true},
		{"a glob of plugins", Selection{Filters: Filters{Plugin: Words{"*"}}}, "greet", "greet", true, false, true},
		{"a server of a local source", Selection{Filters: Filters{Source: Words{"builtin"}, Server: Words{"s"}}}, "", "", true, false, false},
		{"a category", Selection{Filters: Filters{Category: Words{"read"}}}, "read_file", "read_file greet echo made", true, true, false},
		{"a tag", Selection{Filters: Filters{Tag: Words{"files"}}}, "read_file", "read_file greet echo made", true, true, false},
		{"optional tools", Selection{Filters: Filters{Optional: true}}, "greet", "read_file greet echo made", true, true, false},
		{"a tag and a category that no tool has", Selection{Filters: Filters{Tag: Words{"files"}, Category: Words{"other"}}}, "", "read_file greet echo made", true, true, false},
	} {
		var got, also []string
		for _, tool := range tt.s.Apply(append([]*registry.Tool(nil), tools...)) {
			got = append(got, tool.Name)
		}
		for _, h := range tt.s.Hidden(append([]registry.Hidden(nil), hidden...)) {
			also = append(also, h.Name)
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if also := strings.Join(also, " "); also != tt.hidden {
			t.Errorf("%s: hidden %q, want %q", tt.name, also, tt.hidden)
		}
		if tt.s.Narrows() != tt.narrows || tt.s.MatchesServer("s") != tt.server || tt.s.local() != tt.noServer {
			t.Errorf("%s: narrows %t, matches a server %t, needs none %t", tt.name, tt.s.Narrows(), tt.s.MatchesServer("s"), tt.s.local())
		}
	}
}

// listed is a source with these tools, or one that fails.
type listed struct {
	name  string
	tools []registry.Tool
	err   error
}

func (l *listed) Name() string { return l.name }
func (l *listed) Discover(context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	return l.tools, nil, l.err
}

// load returns the registry of sources.
func load(t *testing.T, sources ...registry.Source) *registry.Registry {
	t.Helper()
	return registry.NewLoader(registry.Options{}).Load(t.Context(), sources, false)
}

func TestFailedSources(t *testing.T) {
	good, bad, worse := &listed{name: "builtin"}, &listed{name: "mcp:bad", err: fmt.Errorf("%w: it exited", registry.ErrSourceFailed)}, &listed{name: "mcp:worse", err: fmt.Errorf("%w: no answer", registry.ErrSourceFailed)}
	names := []string{"x"}
	for _, tt := range []struct {
		name    string
		sources []registry.Source
		strict  bool
		names   []string
		want    string // the error; "" for none
	}{
		{"none failed", []registry.Source{good}, true, nil, ""},
		{"one failed, without --strict", []registry.Source{good, bad}, false, nil, ""},
		{"one failed, under --strict", []registry.Source{good, bad}, true, nil, "mcp:bad"},
		{"two failed", []registry.Source{bad, good, worse}, true, nil, "mcp:bad, mcp:worse"},
		{"none of those named failed", []registry.Source{good}, false, names, ""},
		{"the one that is named failed", []registry.Source{bad}, false, names, ": it exited"},
		{"one of those named failed", []registry.Source{good, bad}, false, names, "mcp:bad"},
	} {
		s := Selection{Strict: tt.strict}
		reg := load(t, tt.sources...)
		err := s.NamedFailure(reg, tt.names)
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, registry.ErrSourceFailed) || !strings.HasSuffix(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if err := s.StrictFailure(reg); (err != nil) != (tt.strict && tt.want != "") {
			t.Errorf("%s: strictly %v", tt.name, err)
		}
	}
}

func TestCategoriesOfASelection(t *testing.T) {
	reg := load(t, &listed{name: "builtin", tools: []registry.Tool{
		{Definition: registry.Definition{Name: "a", Source: "builtin", Category: "own"}}, {Definition: registry.Definition{Name: "b", Source: "builtin", Category: "own"}}}})
	for category, want := range map[string]struct {
		needs bool
		hint  string
	}{"": {false, ""}, "read": {false, ""}, "own": {true, ""}, "raed": {true, "one of read, write, command, network, other, own"}} {
		var s Selection
		_ = s.Category.Set(category) // cannot fail
		if s.NeedsRegistry() != want.needs {
			t.Errorf("%q: needs the registry: %t", category, s.NeedsRegistry())
		}
		usage, wrong := errors.AsType[*UsageError](s.CheckCategory(reg))
		if wrong != (want.hint != "") || wrong && usage.Hint != want.hint {
			t.Errorf("%q: %v", category, usage)
		}
	}
	if s := (Selection{Strict: true}); !s.NeedsRegistry() {
		t.Error("--strict does not need the registry")
	}
}
