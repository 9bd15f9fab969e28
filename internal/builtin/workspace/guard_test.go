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
		".opencode/opencode.json": true, ".opencode/plugin/x.js": true, ".husky/pre-commit": true, ".githooks/pre-push": true, ".ssh/authorized_keys": true,
		".ssh/config": true, ".config/fish/config.fish": true, ".config/fish/conf.d/x.fish": true, ".config/direnv/direnvrc": true, ".direnvrc": true,
		".devcontainer/devcontainer.json": true, ".devcontainer.json": true, ".zlogout": true, ".inputrc": true, ".npmrc": true, "sub/.npmrc": true,
		".pre-commit-config.yaml": true, "mise.toml": true, ".mise.toml": true, ".mise/tasks/x": true, ".config/mise/config.toml": true,
		".config/autostart/x.desktop": true, ".config/systemd/user/x.service": true, ".local/share/systemd/user/x.service": true,
		"Library/LaunchAgents/x.plist": true, ".config/environment.d/x.conf": true, "lefthook.yml": true, ".cargo/config.toml": true,
		"x.code-workspace": true, "config/fish/x": false, ".config/other": false, "ssh/config": false, "mise/x": false, ".cargo/bin": false,
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

// Git takes a folder for a repository by what lies in it.
func TestRepositoriesAreGuarded(t *testing.T) {
	opts, _ := place(t, map[string]string{
		"bare/HEAD": "", "bare/config": "", "bare/objects/x": "", "bare/refs/heads/x": "", "tree/HEAD": "", "tree/commondir": "..", "tree/a.txt": "",
		"almost/HEAD": "", "almost/objects/x": "", "doc/HEAD": "", "scripts/a.sh": "", "tools/monitor": "", "hooks/a": "", "main/b": "",
		".git":          "gitdir: real/git",
		"real/git/HEAD": "", "real/git/objects/x": "", "real/git/refs/x": "", "real/git/hooks/pre-commit": "",
		"real/git/config": "[core]\n\thooksPath = scripts\n\tfsmonitor = \"./tools/monitor --x\"\n[user]\n\tname = hooks.x\n[branch \"main\"]\n\tmerge = refs/heads/main\n\tremote = .\n",
	})
	w := New(opts)
	t.Cleanup(func() { w.Close() })
	for _, test := range []struct {
		names []string
		want  bool
	}{
		{[]string{"bare/config"}, true},
		{[]string{"bare/hooks/pre-commit"}, true},
		{[]string{"tree/a.txt"}, true},
		{[]string{"almost/refs/x"}, true}, // that completes it
		{[]string{"almost/commondir"}, true},
		{[]string{"almost/config"}, false},
		{[]string{"doc/readme"}, false},
		{[]string{"new/HEAD"}, false},
		{[]string{"new/HEAD", "new/objects/x", "new/refs/x", "new/config"}, true}, // at once
		{[]string{"real/git/hooks/pre-commit"}, true},
		{[]string{"real/git/config"}, true},
		{[]string{"scripts/a.sh"}, true},
		{[]string{"scripts/post-checkout"}, true},
		{[]string{"tools/monitor"}, true},
		{[]string{"tools/other"}, false},
		{[]string{"hooks/a"}, false},
		{[]string{"main/b"}, false},
		{[]string{"a.txt"}, false},
	} {
		got, err := w.SubjectPaths(test.names...)
		if err != nil || slices.ContainsFunc(got, Guarded) != test.want {
			t.Errorf("%q: %q, %v, want guarded %v", test.names, got, err, test.want)
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
