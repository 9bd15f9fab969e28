package engine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// A preset starts no source whose tools it excludes.
func TestPresetStartsOnlyItsSources(t *testing.T) {
	for preset, want := range map[string]struct {
		sources, starts string
		plugin          bool
		tools           []string // some that there are
		missing         []string
	}{
		"":                {"builtin mcp plugin", "a", true, []string{"read_file", "write_file", "greet", "x"}, nil},
		"full":            {"builtin mcp plugin", "a", true, []string{"read_file", "write_file", "greet", "x"}, nil},
		"read-only":       {"builtin", "", false, []string{"read_file"}, []string{"write_file", "run_shell_command"}},
		"mcp":             {"mcp plugin", "a", true, []string{"greet", "x"}, []string{"read_file"}},
		"read-only, mcp":  {"builtin mcp plugin", "a", true, []string{"read_file", "greet", "x"}, []string{"write_file"}},
		"read-only, full": {"builtin mcp plugin", "a", true, []string{"read_file", "write_file", "greet", "x"}, nil},
	} {
		w := newWorld(t, "plugins: {paths: [plugins]}\n", "a:x")
		withPlugin(t, w)
		if err := CheckPreset(preset); err != nil {
			t.Error(err)
		}
		reg, err := w.session(Options{Preset: preset}).Tools.All(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var sources, names []string
		for _, tool := range reg.Tools() {
			source, _, _ := strings.Cut(tool.Source, ":")
			sources, names = append(sources, source), append(names, tool.Name)
			if !InPreset(preset, tool) {
				t.Errorf("%q: %s is not in it", preset, tool.Name)
			}
		}
		slices.Sort(sources)
		if got := strings.Join(slices.Compact(sources), " "); got != want.sources {
			t.Errorf("%q: tools of %q, want %q", preset, got, want.sources)
		}
		for _, name := range slices.Concat(want.tools, want.missing) {
			if slices.Contains(names, name) != slices.Contains(want.tools, name) {
				t.Errorf("%q: there is %s: %t", preset, name, slices.Contains(names, name))
			}
		}
		_, ran := os.Stat(filepath.Join(w.dir, "plugins/p/ran"))
		if got := w.starts(); got != want.starts || (ran == nil) != want.plugin {
			t.Errorf("%q: started %q, the plugin: %t", preset, got, ran == nil)
		}
	}
	if usage, ok := errors.AsType[*settings.InputError](CheckPreset("read-only,read")); !ok || !strings.Contains(usage.Error(), `unknown preset "read"`) || !strings.Contains(usage.Hint, "read-only") {
		t.Errorf("a preset that does not exist: %v", usage)
	}
}

func TestRemoteServer(t *testing.T) {
	w := newWorld(t, "mcpServers:\n  p: {command: cat}\n  r: {httpUrl: http://127.0.0.1:1}\n  s: {url: http://127.0.0.1:1}\n  broken: {command: cat, args: 7}\n")
	s := w.session(Options{})
	for name, want := range map[string]string{"r": "", "s": "", "p": `server "p" is a program`, "x": `no server named "x" (4 in the settings)`, "broken": "args"} {
		server, err := s.Logins.Remote(name)
		if want == "" && (err != nil || server.Name != name) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v", name, server.Name, err)
		}
	}
	if _, err := s.Logins.Remote("x"); !errors.Is(err, registry.ErrNotFound) {
		t.Error("the error of an unknown server does not match ErrNotFound")
	}
}
