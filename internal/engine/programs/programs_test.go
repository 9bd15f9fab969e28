package programs

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/state"
)

// newSet reads a file that is given for the run, and the settings of a trusted project.
func newSet(t *testing.T, given, project string, warn func(registry.Diagnostic)) *Set {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"given.yaml": given, ".toolreg/settings.yaml": project} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	environ := []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	set, _, err := settings.Load(settings.Options{Dir: dir, Files: []string{filepath.Join(dir, "given.yaml")},
		NoUser: true, TrustProject: true, SystemDir: dir, Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	p := New(t.Context(), Set{Settings: set, Dir: dir, Environ: environ, Folders: &state.Folders{Environ: environ},
		Warn: warn, Log: slog.New(slog.DiscardHandler)}, true, nil)
	t.Cleanup(func() { _ = p.Confiner.Close() })
	return p
}

// The variables of a project are for its own programs: with them it could make a program of the person's
// do something else.
func TestVariablesOfAProject(t *testing.T) {
	for _, tt := range []struct {
		project string
		scope   settings.Scope
		want    []string
	}{
		{"env: {THEIRS: '2'}", settings.ScopeProject, []string{"OURS=1", "THEIRS=2"}},
		{"env: {THEIRS: '2'}", settings.ScopeUser, []string{"OURS=1"}},
		{"", settings.ScopeUser, []string{"OURS=1"}},
	} {
		p := newSet(t, "env: {OURS: '1'}", tt.project, func(d registry.Diagnostic) { t.Error(d) })
		got := slices.DeleteFunc(slices.Clone(p.EnvFor(settings.Command{Origin: settings.Origin{Scope: tt.scope}})),
			func(v string) bool { return !strings.HasPrefix(v, "OURS=") && !strings.HasPrefix(v, "THEIRS=") })
		if slices.Sort(got); !slices.Equal(got, tt.want) {
			t.Errorf("a program of scope %v has %q, want %q", tt.scope, got, tt.want)
		}
	}
}

// Hooks run in the project, which must not be able to put another program in the place of one that the
// person's settings name by a relative path.
func TestProgramsOfHooks(t *testing.T) {
	folder, absolute := t.TempDir(), filepath.Join(t.TempDir(), "check")
	for _, tt := range []struct {
		scope         settings.Scope
		program, want string
	}{
		{settings.ScopeUser, "./bin/check", filepath.Join(folder, "bin", "check")},
		{settings.ScopeSystem, "bin/check", filepath.Join(folder, "bin", "check")},
		{settings.ScopeProject, "./bin/check", "./bin/check"},
		{settings.ScopeUser, "check", "check"}, // found by PATH
		{settings.ScopeUser, absolute, absolute},
	} {
		origin := settings.Origin{Scope: tt.scope, Name: filepath.Join(folder, "settings.yaml")}
		set := &settings.Settings{Hooks: []settings.Hook{{Origin: origin,
			Command: settings.Command{Argv: []string{tt.program, "-a"}, Origin: origin}}}}
		hooks := NewHooks(t.Context(), set, values.NewExpander(folder, nil), nil)
		if got, err := hooks.Hooks[0].Expand(); err != nil || !slices.Equal(got, []string{tt.want, "-a"}) {
			t.Errorf("%s in settings of scope %v is %q, want %q (%v)", tt.program, tt.scope, got, tt.want, err)
		}
	}
}

// What is given for the run takes the place of the setting context, and what toolreg itself knows that of
// both. A value that cannot be expanded is left out, with one warning.
func TestFactsOfARun(t *testing.T) {
	var warned []string
	p := newSet(t, "context: {team: red, build: 7, channel: theirs, key: $NO_SUCH_VARIABLE, list: [a]}", "",
		func(d registry.Diagnostic) { warned = append(warned, d.Code) })
	facts := p.Facts([]settings.Named{{Name: "team", Value: jsonx.NewString("blue")},
		{Name: "channel", Value: jsonx.NewString("mine")}})
	var got map[string]any
	if err := json.Unmarshal(facts.JSON(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"team": "blue", "build": 7.0, "list": []any{"a"}, "channel": "mine", "sandboxed": false,
		"workspace": p.Settings.Workspace, "projectRoot": p.Settings.ProjectRoot}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{"team": "blue", "build": "7", "list": "", "key": "", "other": ""} {
		if text := facts.Text(name); text != want {
			t.Errorf("the text of %s is %q, want %q", name, text, want)
		}
	}
	if !slices.Equal(warned, []string{"context_unset"}) {
		t.Errorf("warned %q", warned)
	}
}
