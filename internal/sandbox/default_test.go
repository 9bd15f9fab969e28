package sandbox_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/toolreg/toolreg/internal/sandbox"
)

func TestDefault(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of other systems")
	}
	home := t.TempDir()
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	at := func(name string) string { return filepath.Join(home, name) }
	for _, folder := range []string{".nvm/versions/node/v1/bin", "bin", ".local/bin", "apps/one/bin", ".acme/bin", "go/bin", "src", "venv/bin", ".cache/go-build"} {
		if err := os.MkdirAll(at(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"src/script", "venv/pyvenv.cfg", "apps/two"} {
		if err := os.WriteFile(at(file), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(at("src/script"), at(".local/bin/script")); err != nil {
		t.Fatal(err)
	}
	p := sandbox.Default(sandbox.Place{
		Workspace: []string{at("work")},
		Own:       []string{at("venv/bin"), at("server/node_modules/@a/b/dist"), at("plugin")},
		Home:      home,
		Environ: []string{"PATH=" + at(".nvm/versions/node/v1/bin") + ":" + at("bin") + ":" + at(".local/bin") + ":" + at("apps/one/bin") + ":" + at(".acme/bin") + ":" + at("go/bin") +
			":relative:" + home + "::/usr/bin", "GOCACHE=" + at("elsewhere"), "CARGO_HOME=" + home},
	})
	for list, want := range map[string][]string{
		"read": {"/usr", "/etc/passwd", at(".nvm"), at("bin"), at(".local/bin"), at(".local/lib"), at("apps/one"), at(".acme/bin"), at("go/bin"), at("src/script"),
			at("venv"), at("server/node_modules"), at("plugin"), at(".gitconfig")},
		"scratch": {at(".cache/go-build"), at("elsewhere"), at(".npm"), at(".cache/pip"), at("go/pkg"), at(".cargo")},
		"hide":    {at(".ssh"), at(".aws"), at(".npmrc"), at(".config/toolreg"), at(".local/state/toolreg"), at(".cargo/credentials.toml")},
		"write":   {at("work")},
	} {
		got := map[string][]string{"read": p.Read, "scratch": p.Scratch, "hide": p.Hide, "write": p.Write}[list]
		for _, path := range want {
			if path == "/etc/passwd" && runtime.GOOS == "darwin" {
				continue
			}
			if !slices.Contains(got, path) {
				t.Errorf("%s is not in %s: %q", path, list, got)
			}
		}
	}
	for _, path := range slices.Concat(p.Read, p.Scratch) {
		if slices.Contains([]string{"/", home, filepath.Dir(home), at("src"), at("go"), at(".acme"), at(".local"), at(".config"), at(".cache")}, path) {
			t.Errorf("%s is open", path)
		}
	}
}

func TestHoldsHome(t *testing.T) {
	home := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(home, link); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(filepath.Join(home, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		folder, home string
		want         bool
	}{
		{home, home, true},
		{filepath.Dir(home), home, true},
		{link, home, true},
		{home, link, true},
		{filepath.Join(home, "work"), home, false},
		{filepath.Join(link, "work"), home, false},
		{home + "-other", home, true}, // it does not exist, so this cannot be determined
		{home, "", false},
	} {
		if got := sandbox.HoldsHome(c.folder, c.home); got != c.want {
			t.Errorf("HoldsHome(%s, %s) = %v", c.folder, c.home, got)
		}
	}
}
