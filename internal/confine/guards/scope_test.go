package guards

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

// A folder that the settings open for writing is guarded like the workspace.
func TestOtherFoldersAreGuarded(t *testing.T) {
	dir, user := place(t, map[string]string{"a": ""})
	other := tooltest.Place(t, map[string]string{".envrc": "mine", ".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": ""})
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{Folders: []string{dir, other, filepath.Join(other, ".git"), filepath.Join(other, ".envrc")}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(g.ReadOnly, filepath.Join(other, ".envrc")) || !slices.Contains(g.Fixed, filepath.Join(other, ".git")) {
		t.Errorf("read-only %q, fixed %q", g.ReadOnly, g.Fixed)
	}
	put(t, other, map[string]string{"sub/.envrc": "", ".git/hooks/pre-commit": ""})
	cleaned, err := g.Clean(t.Context(), everything)
	if diff := cmp.Diff(Cleaned{Removed: []string{filepath.Join(other, ".git/hooks"), filepath.Join(other, "sub/.envrc")}}, cleaned); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// $XDG_CONFIG_HOME can be in the workspace: the settings of toolreg and of git there are the
// user's.
func TestUserSettingsInTheWorkspaceCannotBePlanted(t *testing.T) {
	for name, plant := range map[string]func(dir string){
		"files": func(dir string) {
			put(t, dir, map[string]string{"conf/toolreg/settings.yaml": "", "conf/git/config": "[core]\n\tfsmonitor = x\n"})
		},
		"link":          func(dir string) { tooltest.Link(t, "evil", filepath.Join(dir, "conf")) },
		"absolute link": func(dir string) { tooltest.Link(t, filepath.Join(dir, "evil"), filepath.Join(dir, "conf")) },
	} {
		dir, user := place(t, map[string]string{"evil/toolreg/settings.yaml": "", "evil/git/config": ""})
		user.ConfigHome = filepath.Join(dir, "conf")
		g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{Private: []string{filepath.Join(dir, "conf/toolreg")}})
		if err != nil {
			t.Fatal(err)
		}
		plant(dir)
		cleaned, err := g.Clean(t.Context(), everything)
		if err != nil {
			t.Error(name, err)
		}
		for _, file := range []string{"conf/toolreg/settings.yaml", "conf/git/config"} {
			if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
				t.Errorf("%s: %s is there; %q", name, file, cleaned)
			}
		}
	}
}

// If a link leads to what is private, it is named, and not what is behind it.
func TestLinkToUserSettingsIsNamed(t *testing.T) {
	dir, user := place(t, map[string]string{"evil/toolreg/settings.yaml": ""})
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{Private: []string{filepath.Join(dir, "conf/toolreg")}})
	if err != nil {
		t.Fatal(err)
	}
	tooltest.Link(t, "evil", filepath.Join(dir, "conf"))
	cleaned, err := g.Clean(t.Context(), nothing)
	if diff := cmp.Diff(Cleaned{Kept: []string{"conf"}}, cleaned); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// A protected file has the same content under its other names.
func TestHardLinksAreReadOnly(t *testing.T) {
	dir, user := place(t, map[string]string{".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/hooks/pre-commit": "", "scripts/a": "", ".envrc": ""})
	for from, to := range map[string]string{".git/hooks/pre-commit": "scripts/pre-commit", ".envrc": "scripts/env"} {
		if err := os.Link(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"scripts/pre-commit": true, "scripts/env": true, "scripts/a": false} {
		if slices.Contains(g.ReadOnly, filepath.Join(dir, name)) != want {
			t.Errorf("%s is read-only: %v", name, !want)
		}
	}
}
