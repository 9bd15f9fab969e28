package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
)

// ignoringAbove returns the rules for the whole workspace: the person's global
// excludes, those of the repository that it is or lies in, and the ignore files
// between that one's top and the workspace.
func (w *Dir) ignoringAbove() *IgnoreRules {
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
// the workspace relative to it; "" if there is none. A repository in the home
// directory, which often ignores everything, is not one of the projects below it.
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

// globalExcludes returns the path of the person's own ignore file: git's
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

// readOutside reads one of the person's own files, by absolute path.
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
