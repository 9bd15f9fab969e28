package workspace

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/git"
	"github.com/toolreg/toolreg/internal/text"
)

// Guarded reports whether changing a path, relative to the workspace, could let
// a tool loosen its own restrictions or make other programs run commands: git's
// folder, toolreg's settings and lock, the settings of other agents, startup
// files of shells. Writing there always requires confirmation, even if
// everything else is allowed. Case is ignored, and so are trailing dots and
// spaces, as on Windows.
func Guarded(rel string) bool {
	parts := strings.Split(filepath.ToSlash(path.Clean(rel)), "/")
	for i, part := range parts {
		parts[i] = plainName(part)
	}
	for i, part := range parts {
		switch part {
		case ".git", ".toolreg", ".gemini", ".agents", ".agent", ".claude", ".cursor", ".codex", ".opencode",
			".devin", ".husky", ".githooks", ".ssh", ".gnupg", ".devcontainer", ".direnv",
			".qwen", ".continue", ".goose", ".augment", ".copilot", ".crush", ".amazonq", ".kiro", ".roo",
			".cline", ".clinerules", ".trae", ".factory", ".junie", ".aider", ".amp", ".pi", ".kilocode", ".kilo",
			".openhands", ".vibe", ".qoder", ".codebuddy", ".iflow", ".grok", ".rovodev", ".prime",
			".bashrc.d", ".bash_completion.d", ".zshrc.d", ".profile.d", ".helix", ".theia", ".bsp", ".shadowenv.d":
			return true
		case ".vscode", ".zed", ".windsurf", ".idea":
			// Tasks, servers and settings that these editors use.
			if i+1 < len(parts) {
				return true
			}
		}
	}
	name, all := parts[len(parts)-1], "/"+strings.Join(parts, "/")+"/"
	return slices.Contains(guardedNames(), name) || strings.HasSuffix(name, ".code-workspace") ||
		name == "profile.ps1" || strings.HasSuffix(name, "_profile.ps1") ||
		strings.HasPrefix(strings.TrimPrefix(name, "."), "mise.") && strings.HasSuffix(name, ".toml") ||
		strings.HasSuffix(name, ".pth") && slices.ContainsFunc(parts,
			func(part string) bool { return part == "site-packages" || part == "dist-packages" }) ||
		slices.ContainsFunc(guardedFolders(), func(folder string) bool { return strings.Contains(all, "/"+folder+"/") })
}

// guardedNames returns the names of files that programs use in any folder.
func guardedNames() []string {
	return []string{
		"toolreg.lock", ".mcp.json", "mcp.json", "mcp_config.json", "lsp.json", ".lsp.json",
		"mcporter.json", "opencode.json", "opencode.jsonc", ".devcontainer.json",
		"crush.json", ".crush.json", ".aider.conf.yml", ".aider.model.settings.yml", ".goosehints", ".clinerules",
		// git and what runs on commits
		".gitmodules", ".gitconfig", ".gitattributes", ".hgrc", ".pre-commit-config.yaml",
		".pre-commit-config.yml", ".overcommit.yml", "captainhook.json",
		"lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json",
		".lefthook.yml", ".lefthook.yaml", ".lefthook.toml",
		"lefthook-local.yml", ".lefthook-local.yml", ".simple-git-hooks.json",
		".simple-git-hooks.js", ".simple-git-hooks.cjs",
		// shells and logins
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
		".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
		".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", "config.fish",
		".inputrc", ".xprofile", ".xinitrc", ".xsession", ".xsessionrc",
		".pam_environment", ".screenrc", ".tmux.conf", ".netrc", ".curlrc", ".wgetrc", ".psqlrc", ".mailcap",
		".bash_completion", "tmux.conf", ".sqliterc", ".my.cnf", ".mylogin.cnf", ".mongorc.js",
		".mongoshrc.js", ".lessfilter", ".lesskey", ".ripgreprc", ".ackrc", ".tigrc",
		".muttrc", ".mailrc", ".procmailrc", ".fetchmailrc", ".forward", ".rhosts", ".nanorc", ".ansible.cfg",
		// environments that programs load when they enter a folder
		".envrc", ".direnvrc", ".rvmrc", ".autoenv", ".autoenv.zsh", ".autoenv_leave.zsh",
		".miserc.toml", ".tool-versions", ".rtx.toml",
		// package managers, editors, debuggers
		".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.mjs", ".pypirc", ".gemrc",
		".bundle", ".vimrc", ".gvimrc", ".nvimrc", ".nvim.lua", ".exrc", ".emacs",
		"usercustomize.py", "sitecustomize.py",
		".dir-locals.el", ".dir-locals-2.el", ".gdbinit", ".lldbinit",
		".irbrc", ".pryrc", ".pythonrc", ".pdbrc", ".bazelrc",
		".lvimrc", ".ideavimrc", ".ghci", ".rprofile", ".renviron", ".pylintrc", ".rspec", ".octaverc",
		".iex.exs", ".erlang", ".ocamlinit", ".guile", ".swiplrc",
		".sbtrc", ".sbtopts", ".jvmopts", ".mavenrc", ".condarc", ".mocharc.js", ".mocharc.cjs",
		".eslintrc.js", ".eslintrc.cjs", ".prettierrc.js", ".prettierrc.cjs",
	}
}

// guardedFolders returns the paths of folders whose files programs use.
func guardedFolders() []string {
	return []string{
		".config/fish", ".config/git", ".config/direnv", ".config/mise", ".config/toolreg",
		".config/opencode", ".config/devin", ".config/zed", ".config/code",
		".config/autostart", ".config/autostart-scripts", ".config/plasma-workspace",
		".config/systemd", ".config/environment.d", ".config/nvim",
		".local/share/systemd", ".local/share/fish", ".local/share/applications",
		".local/state/toolreg", "library/launchagents", "library/launchdaemons",
		".mise", "mise/config.toml", "mise/config.local.toml", "_darcs/prefs",
		".github/hooks", ".github/extensions", ".github/agents", ".github/copilot",
		".pijul/config", ".fossil-settings", ".lsp/config.edn", ".cargo/config.toml", ".cargo/config",
		".yarn/releases", ".yarn/plugins", ".mvn", ".bundle", ".emacs.d", ".vim", ".codeium",
		".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath", ".hg/hooks", ".svn/config", ".jj/config.toml",
		".jj/workspace-config.toml", ".jj/repo/config.toml", ".sl/config",
		".kube/config", ".docker/config.json", ".docker/cli-plugins", ".aws/config", ".aws/credentials",
		".aws/cli/alias", ".gradle/init.gradle", ".gradle/init.gradle.kts",
		".gradle/init.d", ".m2/settings.xml", ".m2/extensions.xml", ".local/bin", ".config/tmux",
		".config/hg", ".config/jj", ".config/pip", ".pip", ".config/goose",
		".config/crush", ".config/gh", ".config/git-hooks", ".config/zsh", ".config/bash", ".config/nushell",
		".config/containers", ".ipython", ".jupyter", ".terraform.d", ".stack",
	}
}

// NewHidden reports whether writing a path, relative to the folder dir, would create a
// file or folder whose name begins with a dot and which is not known to be harmless. Many
// programs run what such files say, more than [Guarded] knows.
func NewHidden(dir, rel string) bool {
	at := ""
	for part := range strings.SplitSeq(filepath.ToSlash(path.Clean(rel)), "/") {
		at = path.Join(at, part)
		name := plainName(part)
		if !strings.HasPrefix(name, ".") || strings.Trim(name, ".") == "" || slices.Contains(harmlessNames(), name) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(at))); err != nil {
			return true
		}
	}
	return false
}

// StartsPrograms reports whether changing a path, relative to a home folder, could make programs
// run commands. It decides by the kind of place, because nobody knows all programs that read files
// there: names that begin with a dot, and places where systems and shells look for what they run.
func StartsPrograms(rel string) bool {
	parts := strings.Split(filepath.ToSlash(path.Clean(rel)), "/")
	for i, part := range parts {
		parts[i] = plainName(part)
		if name := parts[i]; strings.HasPrefix(name, ".") &&
			strings.Trim(name, ".") != "" && !slices.Contains(harmlessNames(), name) {
			return true
		}
	}
	switch parts[0] {
	case "bin", "library", "appdata":
		return true
	case "documents", "my documents":
		return len(parts) > 1 && (parts[1] == "powershell" || parts[1] == "windowspowershell")
	}
	return false
}

// harmlessNames returns the names of files and folders that begin with a dot and cause
// nothing to run on this machine.
func harmlessNames() []string {
	return []string{
		".gitignore", ".gitkeep", ".keep", ".mailmap", ".git-blame-ignore-revs", ".ignore", ".rgignore",
		".fdignore", ".geminiignore", ".dockerignore", ".npmignore",
		".eslintignore", ".prettierignore", ".stylelintignore", ".helmignore",
		".gcloudignore", ".vercelignore", ".hgignore", ".editorconfig", ".clang-format",
		".rustfmt.toml", ".nojekyll", ".nvmrc", ".node-version", ".python-version",
		".ruby-version", ".env.example", ".env.sample", ".env.template",
		".github", ".gitlab", ".gitlab-ci.yml", ".circleci", ".travis.yml", ".well-known", ".changeset",
	}
}

// MayBeGuarded is a quick test before [Guarded]: almost all guarded paths have
// a component that starts with a dot.
func MayBeGuarded(e *Entry) bool {
	if e.Path[0] == '.' || strings.Contains(e.Path, "/.") {
		return true
	}
	for i := range len(e.Name) {
		if e.Name[i] >= 0x80 {
			return true
		}
	}
	switch lower := strings.ToLower(e.Name); {
	case strings.HasPrefix(lower, "lefthook"), strings.HasPrefix(lower, "opencode"),
		strings.HasPrefix(lower, "mise"), strings.HasPrefix(lower, "_darcs"),
		strings.HasPrefix(lower, "prefs"), strings.HasPrefix(lower, "captainhook"),
		strings.HasPrefix(lower, "mcp.json"), strings.HasPrefix(lower, "mcp_config"),
		strings.HasPrefix(lower, "mcporter.json"), strings.HasPrefix(lower, "lsp.json"),
		strings.HasSuffix(lower, "customize.py"), strings.HasSuffix(lower, ".pth"),
		strings.HasSuffix(lower, "profile.ps1"), strings.HasPrefix(lower, "toolreg.lock"),
		strings.HasPrefix(lower, "config."), strings.HasPrefix(lower, "launch"),
		strings.HasPrefix(lower, "crush.json"), strings.HasPrefix(lower, "tmux.conf"),
		strings.Contains(lower, ".code-workspace"):
		return true
	}
	return false
}

// LeadsToGuarded reports whether a folder with this path, which is not guarded
// itself, can contain guarded paths. A link with this name would make files of any
// name guarded.
func LeadsToGuarded(rel string) bool {
	name := plainName(path.Base(rel))
	switch name {
	case ".vscode", ".zed", ".windsurf", ".idea":
		return true
	}
	return slices.ContainsFunc(guardedFolders(), func(folder string) bool {
		return slices.Contains(strings.Split(path.Dir(folder), "/"), name)
	})
}

// IsGit reports whether a file with this name would be git's folder of a repository.
func IsGit(name string) bool { return len(name) >= 4 && plainName(name) == ".git" }

// plainName returns a name without the differences that some file systems ignore: case and forms
// of letters, trailing dots and spaces, a stream suffix, and zero-width characters.
func plainName(name string) string {
	name, _, _ = strings.Cut(name, ":")
	name = strings.Map(func(r rune) rune {
		if r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, text.Folded(name))
	if trimmed := strings.TrimRight(name, ". "); trimmed != "" {
		return trimmed
	}
	return name
}

// SubjectPaths returns the paths that policy rules are matched against for a
// call with these path params: each path as written, the real path with links
// resolved, and the usual name of a guarded folder if the file system or git
// accepts another name for it.
func (w *Dir) SubjectPaths(names ...string) ([]string, error) {
	var out []string
	add := func(p string) {
		out = text.AppendNew(out, p)
	}
	var all []string
	for _, name := range names {
		// What creates a file does not take one for it whose name only looks the same.
		for _, form := range []func(string) string{text.Alike, text.Composed} {
			rel, err := w.resolve(name, form)
			if err != nil {
				return nil, err
			}
			all = text.AppendNew(all, rel)
		}
	}
	root := w.root // which resolve has opened
	for _, rel := range all {
		add(rel)
		for _, folder := range []string{".git", ".toolreg"} {
			if below, ok := cutFolder(root, rel, folder); ok {
				add(path.Join(folder, below))
			}
		}
		if below, ok := inRepository(root, rel, all); ok {
			add(path.Join(".git", below))
		}
	}
	for _, name := range names {
		if written, err := w.relative(name); err == nil {
			add(written)
		}
	}
	return out, nil
}

// cutFolder reports whether rel is folder or inside it, comparing file identity.
// It also returns the rest of rel below folder.
func cutFolder(root *os.Root, rel, folder string) (string, bool) {
	want, err := root.Stat(folder)
	if err != nil {
		return "", false
	}
	for at, below := rel, ""; at != "."; at, below = path.Dir(at), path.Join(path.Base(at), below) {
		if info, err := root.Stat(at); err == nil && os.SameFile(info, want) {
			return below, true
		}
	}
	return "", false
}

// Repositories in folders other than .git are guarded too: git treats any folder
// with the right files as a repository and runs the commands in its
// configuration.

// inRepository returns the rest of rel below a folder that git treats as a
// repository, or would treat as one once all the written files exist.
func inRepository(root *os.Root, rel string, written []string) (below string, ok bool) {
	for at, below := path.Dir(rel), path.Base(rel); ; at, below = path.Dir(at), path.Join(path.Base(at), below) {
		has := func(name string) bool {
			_, err := root.Stat(path.Join(at, name))
			return err == nil ||
				slices.ContainsFunc(written, func(file string) bool { return git.LiesIn(file, path.Join(at, name)) })
		}
		if has("HEAD") && (has("objects") && has("refs") || has("commondir")) {
			return below, true
		}
		if at == "." {
			return "", false
		}
	}
}
