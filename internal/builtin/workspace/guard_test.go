package workspace

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/text"
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
		".hg/hgrc": true, ".hg/store/x": false, ".jj/repo/config.toml": true, ".qwen/settings.json": true, ".continue/config.yaml": true, ".aider.conf.yml": true,
		"crush.json": true, ".goose/config.yaml": true, ".augment/x": true, ".copilot/config.json": true, ".ghci": true, ".Rprofile": true, ".lvimrc": true,
		".pylintrc": true, "sub/.pylintrc": true, ".bashrc.d/x": true, ".kube/config": true, ".docker/config.json": true, ".aws/config": true,
		".gradle/init.gradle": true, ".gradle/caches/x": false, ".local/bin/ls": true, ".local/share/x": false, "tmux.conf": true, ".config/tmux/tmux.conf": true,
		".github/hooks/x.json": true, "sub/.github/hooks/x.json": true, "mise/config.toml": true, "mise/README.md": false, "_darcs/prefs/defaults": true, "_darcs/inventory": false,
		".helix/languages.toml": true, ".theia/tasks.json": true, ".bsp/x.json": true, ".shadowenv.d/x.lisp": true, ".dir-locals-2.el": true, ".rvmrc": true, ".autoenv.zsh": true,
		"Documents/PowerShell/Microsoft.PowerShell_profile.ps1": true, "profile.ps1": true, "user-profile.ps1": false, "lib/usercustomize.py": true, "sitecustomize.py": true,
		".venv/lib/python3.12/site-packages/x.pth": true, "model.pth": false,
		".github/lsp.json": true, "lsp.json": true, ".github/extensions/x/extension.mjs": true, ".github/copilot/settings.json": true, ".github/agents/x.md": true,
		".pi/extensions/x.ts": true, ".amp/settings.json": true, ".kilocode/setup-script": true, ".openhands/setup.sh": true, "mise.dev.toml": true,
		".mise.dev.local.toml": true, "mise.lock": false, "promise.toml": false, ".miserc.toml": true, ".pnpmfile.mjs": true,
		".lsp/config.edn": true, ".lsp/x": false, "captainhook.json": true,
		".ba\u017fhrc": true, ".pro\ufb01le": true, "LEFTHOO\u212a.yml": true, ".con\ufb01g/fish/x": true, ".\uff47\uff49\uff54/config": true, // as macOS reads them
		".ba\u00dfhrc": false, "\uff0fgit/config": false,
		".": false, "...": false, "config": false, "hooks/pre-commit": false, ".vscode": false,
	} {
		if got := Guarded(path); got != want {
			t.Errorf("Guarded(%q) = %v", path, got)
		}
	}
}

// In a home folder, everything that may be run is guarded by its kind, known or not.
func TestStartsPrograms(t *testing.T) {
	for path, want := range map[string]bool{
		".oh-my-zsh/custom/x.zsh": true, ".hammerspoon/init.lua": true, ".wezterm.lua": true, ".config/i3/config": true, ".config/sway/config": true, ".config/hypr/hyprland.conf": true,
		".config/kitty/kitty.conf": true, ".unheard-of": true, "project/.anything/x": true, "bin/ls": true, "Library/LaunchAgents/x.plist": true, "AppData/Roaming/x": true,
		"Documents/PowerShell/x.ps1": true, "documents/notes.txt": false, "documents": false, "project/main.go": false, "project/bin/x": false, "project/.gitignore": false, ".": false, "x/..": false,
		"project/services/x.go": false,
	} {
		if got := StartsPrograms(path); got != want {
			t.Errorf("StartsPrograms(%q) = %v", path, got)
		}
	}
}

// Git's folder is found under all names that some file system takes for it.
func TestIsGit(t *testing.T) {
	for name, want := range map[string]bool{
		".git": true, ".GIT": true, ".git.": true, ".git ": true, ".git::$INDEX_ALLOCATION": true, ".git\ufeff": true,
		".gi\u200bt": true, ".gi\u200ft": true, ".gi\u202at": true, ".gi\u202et": true, ".gi\u2060t": true, ".gi\u206ft": true,
		".gi\u200at": false, ".gi\u2010t": false, ".gi\u2029t": false, ".gi\u202ft": false, ".gi\u205ft": false, ".gi\u2070t": false,
		"git": false, ".gi": false, "main.go": false, ".github": false,
	} {
		if got := IsGit(name); got != want {
			t.Errorf("IsGit(%q) = %v", name, got)
		}
	}
}

func TestNewHidden(t *testing.T) {
	dir := tooltest.Place(t, map[string]string{".known/a": "", ".knownrc": "", "sub/a": ""})
	for path, want := range map[string]bool{
		".newrc": true, "sub/.newrc": true, ".new/a/b": true, ".known/.new": true, "new/.rc": true, "./.newrc": true,
		".known/b": false, ".knownrc": false, "a.txt": false, "sub/b": false, "..a": true, ".": false, "...": false,
		".gitignore": false, "sub/.GITIGNORE": false, ".github/workflows/x.yml": false, ".github/.newrc": true, ".editorconfig": false, ".env.example": false, ".env": true,
	} {
		if got := NewHidden(dir, path); got != want {
			t.Errorf("NewHidden(%q) = %v", path, got)
		}
	}
}

// Every guarded name is found when the workspace is scanned.
func TestGuardedNamesAreScanned(t *testing.T) {
	for _, name := range guardedNames() {
		if !MayBeGuarded(&Entry{Path: "sub/" + name, Name: name}) {
			t.Errorf("MayBeGuarded does not know %q", name)
		}
	}
	for _, folder := range guardedFolders() {
		if !MayBeGuarded(&Entry{Path: "sub/" + folder, Name: path.Base(folder)}) {
			t.Errorf("MayBeGuarded does not know %q", folder)
		}
	}
	for name, want := range map[string]bool{".envrc": true, "mcp\u200b.json": true, "main.go": false, "README": false} {
		if got := MayBeGuarded(&Entry{Path: name, Name: name}); got != want {
			t.Errorf("MayBeGuarded(%q) = %v", name, got)
		}
	}
}

// A model cannot read the tokens of logins, even if the workspace is the home
// directory.
func TestLoginsAreNotRead(t *testing.T) {
	const name = "login-0123456789abcdef0123456789abcdef.json"
	opts, dir := place(t, map[string]string{".local/state/toolreg/" + name: "access-secret", "login-form.json": "fine"})
	tooltest.Link(t, ".local/state/toolreg/"+name, filepath.Join(dir, "innocent"))
	w := tooltest.Open(t, New(opts))
	for path, want := range map[string]bool{".local/state/toolreg/" + name: false, "innocent": false, "login-form.json": true} {
		rel, err := w.resolve(path, text.Alike)
		if err != nil {
			t.Fatal(err)
		}
		if data, _, err := w.ReadFile(rel, 1000); (err == nil) != want {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}

// Git recognizes a repository by the files in a folder.
func TestRepositoriesAreGuarded(t *testing.T) {
	opts, _ := place(t, map[string]string{
		"bare/HEAD": "", "bare/config": "", "bare/objects/x": "", "bare/refs/heads/x": "", "tree/HEAD": "", "tree/commondir": "..", "tree/a.txt": "",
		"almost/HEAD": "", "almost/objects/x": "", "doc/HEAD": "", "scripts/a.sh": "", "tools/monitor": "", "hooks/a": "", "main/b": "",
		".git":          "gitdir: real/git",
		"real/git/HEAD": "", "real/git/objects/x": "", "real/git/refs/x": "", "real/git/hooks/pre-commit": "",
		"real/git/config": "[core]\n\thooksPath = scripts\n\tfsmonitor = \"./tools/monitor --x\"\n[user]\n\tname = hooks.x\n[branch \"main\"]\n\tmerge = refs/heads/main\n\tremote = .\n",
	})
	w := tooltest.Open(t, NewEditor(opts))
	for _, test := range []struct {
		names []string
		want  bool
	}{
		{[]string{"bare/config"}, true},
		{[]string{"bare/hooks/pre-commit"}, true},
		{[]string{"tree/a.txt"}, true},
		{[]string{"almost/refs/x"}, true}, // this completes it
		{[]string{"almost/commondir"}, true},
		{[]string{"almost/config"}, false},
		{[]string{"doc/readme"}, false},
		{[]string{"new/HEAD"}, false},
		{[]string{"new/HEAD", "new/objects/x", "new/refs/x", "new/config"}, true}, // in one call
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
		got, err := w.ChangedPaths(test.names...)
		if err != nil || slices.ContainsFunc(got, Guarded) != test.want {
			t.Errorf("%q: %q, %v, want guarded %v", test.names, got, err, test.want)
		}
	}
}

// Paths that git's configuration refers to are guarded, wherever the setting is: in the
// enclosing repository or a nested one, in the user's configuration, or in an included
// file.
func TestPathsInGitConfigurationAreGuarded(t *testing.T) {
	top := tooltest.Place(t, map[string]string{
		".git/config": "[core] hooksPath = \"sub/tools/hooks\" # with a comment\n[include]\n\tpath = ../sub/git/extra\n" +
			"[includeIf \"gitdir:a=]b/\"]\n path = ../sub/git/\\\nsometimes\n[core]\n\tworktree = " + "/nowhere\n[alias]\n\tx = \"!sh './sub/alias.sh'\"\n",
		"sub/git/extra":         "[include]\npath = nested\n[diff \"x\"]\n\ttextconv = sub/textconv\n",
		"sub/git/nested":        "[include]\npath = extra\n[init]\ntemplateDir = sub/template\n",
		"sub/inner/.git/config": "[core]\n\thooksPath = h\n",
		"sub/shared/pre-push":   "", ".git/hooks/x.sample": "", "sub/a.txt": "", "sub/tools/a": "", "sub/real/a": "",
	})
	dir := filepath.Join(top, "sub")
	tooltest.Link(t, "../../sub/shared/pre-push", filepath.Join(top, ".git/hooks/pre-push"))
	tooltest.Link(t, "real", filepath.Join(dir, "linked"))
	home, config := t.TempDir(), t.TempDir()
	for file, text := range map[string]string{
		filepath.Join(home, ".gitconfig"):      "[core]\n\thooksPath = user-hooks\n[safe]\n\tdirectory = " + top + "\n\tdirectory = " + dir + "\n[user]\n\tname = a/b\n",
		filepath.Join(config, "git", "config"): "[include]\n\tpath = ~/more\n[filter \"x\"]\n\tclean = " + dir + "/clean.sh %f\n",
		filepath.Join(home, "more"):            "[core]\n\tfsmonitor = sub/linked/monitor\n[maintenance]\n\trepo = " + dir + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := tooltest.Open(t, NewEditor(Options{Dir: dir, Home: home, ConfigHome: config}))
	for path, want := range map[string]bool{
		"tools/hooks/pre-commit": true, "tools/a": false, "git/extra": true, "git/sometimes": true, "git/nested": true, "git/other": false,
		"alias.sh": true, "textconv": true, "template/hooks/x": true, "template.txt": false, "inner/h/pre-commit": true, "inner/src/x": false, "h/x": false,
		"shared/pre-push": true, "shared/other": false, "user-hooks/x": true, "inner/user-hooks/x": true, "clean.sh": true, "linked/monitor": true,
		"real/monitor": true, "real/a": false, "a.txt": false, "new/file": false,
	} {
		got, err := w.ChangedPaths(path)
		if err != nil || slices.ContainsFunc(got, Guarded) != want {
			t.Errorf("%s: %q, %v, want guarded %v", path, got, err, want)
		}
	}
}

func TestSubjectNamesLinkTargets(t *testing.T) {
	opts, dir := place(t, map[string]string{".git/hooks/x": "", "a.txt": ""})
	tooltest.Link(t, ".git", filepath.Join(dir, "innocent"))
	tooltest.Link(t, "../.git/hooks", filepath.Join(dir, ".git/h"))
	w := tooltest.Open(t, New(opts))
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
	// A second name for the folder, as on a case-insensitive file system.
	if err := os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	tooltest.Link(t, "other", filepath.Join(dir, ".git"))
	got, err := w.SubjectPaths("other/config")
	if err != nil || !slices.ContainsFunc(got, Guarded) {
		t.Errorf("%q, %v", got, err)
	}
}
