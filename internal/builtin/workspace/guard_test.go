package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

func TestGuarded(t *testing.T) {
	for path, want := range map[string]bool{
		".git/hooks/pre-commit": true, ".git/config": true, ".GIT/config": true, ".git": true, "sub/.git/config": true, ".git./config": true,
		".git /config": true, ".git::$INDEX_ALLOCATION/config": true, ".g\u200cit/config": true, "x/../.git/config": true, "./.git/config": true,
		".toolreg/settings.yaml": true, ".Toolreg/plugins/x/plugin.yaml": true, "toolreg.lock": true,
		".envrc": true, "sub/.envrc": true, ".bashrc": true, "home/.zshrc": true, ".gitmodules": true,
		".mcp.json": true, ".vscode/tasks.json": true, ".gemini/settings.json": true, ".claude/settings.json": true,
		"main.go": false, "git/config": false, ".github/workflows/x.yml": false, ".gitignore": false, "envrc": false, "toolreg/x": false,
		".": false, "...": false, "config": false, "hooks/pre-commit": false, ".vscode": false,
	} {
		if got := Guarded(path); got != want {
			t.Errorf("Guarded(%q) = %v", path, got)
		}
	}
}

// A model reads no tokens, even where the workspace is somebody's home.
func TestLoginsAreNotRead(t *testing.T) {
	const name = "login-0123456789abcdef0123456789abcdef.json"
	opts, dir := place(t, map[string]string{".local/state/toolreg/" + name: "access-secret", "login-form.json": "fine"})
	tooltest.Link(t, ".local/state/toolreg/"+name, filepath.Join(dir, "innocent"))
	w := New(opts)
	t.Cleanup(func() { w.Close() })
	for path, want := range map[string]bool{".local/state/toolreg/" + name: false, "innocent": false, "login-form.json": true} {
		rel, err := w.resolve(path)
		if err != nil {
			t.Fatal(err)
		}
		if data, _, err := w.ReadFile(rel, 1000); (err == nil) != want {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}

func TestSubjectNamesWhatIsBehindALink(t *testing.T) {
	opts, dir := place(t, map[string]string{".git/hooks/x": "", "a.txt": ""})
	tooltest.Link(t, ".git", filepath.Join(dir, "innocent"))
	tooltest.Link(t, "../.git/hooks", filepath.Join(dir, ".git/h"))
	w := New(opts)
	t.Cleanup(func() { w.Close() })
	tests := map[string][]string{
		"a.txt":          {"a.txt"},
		"./a.txt":        {"a.txt"},
		"innocent/h/new": {".git/hooks/new", "innocent/h/new"},
		dir + "/a.txt":   {"a.txt"},
	}
	for name, want := range tests {
		got, err := w.SubjectPaths(name)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if _, err := w.SubjectPaths("a.txt", "../x"); err == nil {
		t.Error("a path outside has no error")
	}
	// A second name for the folder, as a file system without case gives.
	if err := os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	tooltest.Link(t, "other", filepath.Join(dir, ".git"))
	got, err := w.SubjectPaths("other/config")
	if err != nil || !slices.ContainsFunc(got, Guarded) {
		t.Errorf("%q, %v", got, err)
	}
}
