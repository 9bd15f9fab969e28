package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/git"
)

// rulesAbove returns the rules for the whole workspace: those of the user's
// global excludes, of the repository that contains the workspace, and of the
// ignore files between the top of that repository and the workspace.
func rulesAbove(workspace string, user git.User) *IgnoreRules {
	out := &IgnoreRules{}
	add := func(name, above, file string) {
		if rules := parseIgnore(git.ReadFile(file)); len(rules) > 0 {
			to := out.list(name)
			*to = &ignoreList{above: above, rules: rules, next: *to}
		}
	}
	top, above := repository(workspace, user)
	add(gitIgnore, above, globalExcludes(user))
	if top == "" {
		return out
	}
	folders := git.Folders(top)
	add(gitIgnore, above, filepath.Join(folders[len(folders)-1], "info", "exclude"))
	for above != "" {
		for _, name := range ignoreNames() {
			add(name, above, filepath.Join(top, name))
		}
		var next string
		next, above, _ = strings.Cut(above, "/")
		top = filepath.Join(top, next)
	}
	return out
}

// repository returns the top of the repository that contains the workspace, and
// the workspace relative to it; top is "" if there is no repository. A repository
// in the home directory does not apply to the projects below it, because it often
// ignores everything.
func repository(workspace string, user git.User) (top, above string) {
	home, _ := user.Folders()
	home = git.ResolveLinks(home)
	for dir := workspace; dir == workspace || dir != home; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			if dir == workspace {
				return dir, ""
			}
			rel, _ := filepath.Rel(dir, workspace) // both are absolute
			return dir, filepath.ToSlash(rel)
		}
		if dir == filepath.Dir(dir) {
			return "", ""
		}
	}
	return "", ""
}

// globalExcludes returns the path of the user's own ignore file: git's
// core.excludesFile, or git/ignore in the configuration folder.
func globalExcludes(user git.User) (found string) {
	home, config := user.Folders()
	for _, file := range slices.Backward(user.Configs()) {
		for s := range git.Settings(string(git.ReadFile(file))) {
			if s.Name == "core.excludesfile" {
				found = s.Value
			}
		}
		if found != "" {
			return expand.Home(found, home)
		}
	}
	return filepath.Join(config, "git", "ignore")
}
