package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
)

// rulesAbove returns the rules for the whole workspace: those of the user's
// global excludes, of the repository that contains the workspace, and of the
// ignore files between the top of that repository and the workspace.
func (w *Dir) rulesAbove() *IgnoreRules {
	out := &IgnoreRules{}
	add := func(name, above, file string) {
		if rules := parseIgnore(readOutside(file)); len(rules) > 0 {
			to := out.list(name)
			*to = &ignoreList{above: above, rules: rules, next: *to}
		}
	}
	top, above := w.repository()
	add(gitIgnore, above, w.globalExcludes())
	if top == "" {
		return out
	}
	folders := gitFolders(top)
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
func (w *Dir) repository() (top, above string) {
	home, _ := w.userFolders()
	home = withoutLinks(home)
	for dir := w.real; dir == w.real || dir != home; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			rel, err := filepath.Rel(dir, w.real)
			if err != nil || rel == "." {
				return dir, ""
			}
			return dir, filepath.ToSlash(rel)
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return "", ""
}

// globalExcludes returns the path of the user's own ignore file: git's
// core.excludesFile, or git/ignore in the configuration folder.
func (w *Dir) globalExcludes() (found string) {
	home, config := w.userFolders()
	for _, file := range slices.Backward(w.userConfigs()) {
		for key, value := range configEntries(string(readOutside(file))) {
			if key == "core.excludesfile" {
				found = value
			}
		}
		if found != "" {
			return expand.Home(found, home)
		}
	}
	return filepath.Join(config, "git", "ignore")
}

// readOutside reads a file outside the workspace, such as the user's
// configuration, by absolute path.
func readOutside(path string) []byte {
	if !filepath.IsAbs(path) {
		return nil
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	return readAtMost(f, maxIgnoreFile)
}
