package engine

import (
	"testing"

	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
)

// What an approval is tied to has the values of variables, and whether programs inherit the whole environment.
func TestBehindIsExpanded(t *testing.T) {
	value := "one"
	base := func() *settings.Settings {
		pair := []settings.Pair{{Name: "A", Value: "$V"}}
		return &settings.Settings{
			Servers: []settings.Server{{Name: "s", Command: "$V", Args: []string{"${V}"}, Env: pair}, {Name: "h", URL: "https://h/$V", Headers: pair}},
			APIs:    []settings.API{{Server: settings.Server{Name: "a", URL: "https://a/$V"}}},
			Env:     pair, DiscoveryCommand: settings.Command{Argv: []string{"$V"}},
		}
	}
	behind := func(set *settings.Settings, tool *registry.Tool) string {
		t.Helper()
		r := &policies{programs: &programs.Set{Settings: set, Expander: values.NewExpander("/p", []string{"V=" + value})}}
		got, err := r.behind(t.Context(), tool)
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	server := func(source, name string) *registry.Tool {
		return &registry.Tool{Definition: registry.Definition{Source: source + name, Server: name, ServerTool: "x"}}
	}
	shell := &registry.Tool{Definition: registry.Definition{Source: registry.SourceBuiltin}, Behavior: registry.Behavior{Program: registry.ProgramShell}}
	discovered := &registry.Tool{Definition: registry.Definition{Source: registry.SourceCommand}}
	for name, tool := range map[string]*registry.Tool{"a program": server("mcp:", "s"), "an address": server("mcp:", "h"), "an API": server("openapi:", "a"), "a command": discovered, "the shell": shell} {
		value = "one"
		before := behind(base(), tool)
		if again := behind(base(), tool); again != before || before == "" {
			t.Errorf("%s: %q, then %q", name, before, again)
		}
		if value = "two"; behind(base(), tool) == before {
			t.Errorf("%s: another value makes no difference", name)
		}
	}
	plain := &settings.Settings{}
	inherits := &settings.Settings{InheritEnv: true}
	if behind(plain, shell) == behind(inherits, shell) {
		t.Error("inheritEnv makes no difference for shell commands")
	}
	plain.Servers, inherits.Servers = []settings.Server{{Name: "s"}}, []settings.Server{{Name: "s", InheritEnv: true}}
	if behind(plain, server("mcp:", "s")) == behind(inherits, server("mcp:", "s")) {
		t.Error("inheritEnv makes no difference for a server")
	}
	unset := &policies{programs: &programs.Set{Settings: base(), Expander: values.NewExpander("/p", nil)}}
	if _, err := unset.behind(t.Context(), shell); err == nil {
		t.Error("a variable that is not set counts as some value")
	}
}

// Stored approvals have hashes of this text. If it changes, so that a type is renamed or moved, all of
// them are void.
func TestBehindIsWrittenAsBefore(t *testing.T) {
	set := &settings.Settings{Servers: []settings.Server{{Name: "s", Command: "run", Args: []string{"a b"},
		Env: []settings.Pair{{Name: "A", Value: "1"}}, Cwd: "/c", Type: "stdio"}}}
	p := &policies{programs: &programs.Set{Settings: set, Expander: values.NewExpander("/p", nil)}}
	got, err := p.behind(t.Context(), &registry.Tool{
		Definition: registry.Definition{Source: "mcp:s", Server: "s", ServerTool: "x"}})
	const want = `[]engine.program{engine.program{Argv:[]string{"run", "a b"}, Env:[]string{"A=1"}, ` +
		`Headers:[]string{}, Inherit:false, Cwd:"/c", Type:"stdio", URLs:[]string{"", ""}}}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}
