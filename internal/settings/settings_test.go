package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/trust"
)

// sandbox is a set of folders from which settings are loaded.
type sandbox struct {
	t                     *testing.T
	home, system, project string
	trust                 *trust.Store
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &sandbox{t: t, home: filepath.Join(base, "home"), system: filepath.Join(base, "etc"), project: filepath.Join(base, "home", "work", "project")}
	dir, err := state.OpenDir(filepath.Join(base, "state"))
	if err != nil {
		t.Fatal(err)
	}
	b.trust = trust.NewStore(dir)
	for _, dir := range []string{b.home, b.system, filepath.Join(b.project, projectFolder)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *sandbox) write(path, text string) string {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b *sandbox) user(name, text string) string {
	return b.write(filepath.Join(b.home, ".config", "toolreg", name), text)
}

func (b *sandbox) projectFile(name, text string) string {
	return b.write(filepath.Join(b.project, name), text)
}

func (b *sandbox) options(environ ...string) Options {
	return Options{Dir: b.project, SystemDir: b.system, Trust: b.trust, Environ: append([]string{"HOME=" + b.home, "APPDATA=" + filepath.Join(b.home, ".config"), "PATH=" + os.Getenv("PATH")}, environ...)}
}

// load loads settings that must be free of mistakes.
func (b *sandbox) load(o Options) *Settings {
	b.t.Helper()
	s, _, err := Load(o)
	if err != nil {
		b.t.Fatalf("Load: %v", err)
	}
	return s
}

// A program of the person's gets neither the variables nor the sandbox of a project.
func TestSettingsForPrograms(t *testing.T) {
	b := newSandbox(t)
	o := b.options()
	o.TrustProject = true
	b.user("settings.yaml", "env: {A: hers, B: hers}\nsandbox: {hooks: {mode: auto}}\n")
	b.projectFile(".toolreg/settings.yaml", "env: {A: theirs, C: theirs}\ninheritEnv: true\nsandbox: {hooks: {mode: require}, mode: auto}\n")
	s := b.load(o)
	for scope, want := range map[Scope]string{
		ScopeProject: "A=theirs B=hers C=theirs true require auto", ScopeUser: "A=hers B=hers false auto off", ScopeFile: "A=hers B=hers false auto off",
	} {
		set, got := s.For(scope), ""
		for _, p := range set.Env {
			got += p.Name + "=" + p.Value + " "
		}
		got += fmt.Sprint(set.InheritEnv, " ", set.Setting("sandbox.hooks.mode").Value.Text(), " ", set.Setting("sandbox.mode").Value.Text())
		if got != want {
			t.Errorf("%s: %s, want %s", scope, got, want)
		}
	}
	b.projectFile(".toolreg/settings.yaml", "names: {servers: first}\n")
	if s := b.load(o); s.For(ScopeUser) != s {
		t.Error("there is no difference, but it has been looked for again")
	}
}

// A server that is tried with another entry has the secrets of that entry.
func TestWithServerHasItsSecrets(t *testing.T) {
	b := newSandbox(t)
	b.user("settings.yaml", "mcpServers: {s: {command: x, env: {API_KEY: first-key}}}\n")
	s := b.load(b.options())
	next, err := s.WithServer("s", []byte(`{"command": "x", "env": {"API_KEY": "second-key"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for of, want := range map[*Settings][]string{s: {"first-key"}, next: {"first-key", "second-key"}} {
		if diff := cmp.Diff(want, of.Merged().Secrets(nil)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
