package workspace

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
)

// Repositories in folders other than .git are guarded too: git treats any folder
// with the right files as a repository and runs the commands in its
// configuration.

// inRepository returns the rest of rel below a folder that git treats as a
// repository, or would treat as one once all the written files exist.
func (w *Dir) inRepository(rel string, written []string) (below string, ok bool) {
	root, err := w.Root()
	if err != nil {
		return "", false
	}
	for at, below := path.Dir(rel), path.Base(rel); ; at, below = path.Dir(at), path.Join(path.Base(at), below) {
		has := func(name string) bool {
			_, err := root.Stat(path.Join(at, name))
			return err == nil || slices.ContainsFunc(written, func(file string) bool { return liesIn(file, path.Join(at, name)) })
		}
		if has("HEAD") && (has("objects") && has("refs") || has("commondir")) {
			return below, true
		}
		if at == "." {
			return "", false
		}
	}
}

// liesIn reports whether file is folder or below it, ignoring case.
func liesIn(file, folder string) bool {
	file, folder = strings.ToLower(file), strings.ToLower(folder)
	return file == folder || strings.HasPrefix(file, folder+"/")
}

// maxConfigs limits how many git configuration files are read to check one
// file.
const maxConfigs = 50

// namedByGit reports whether git reads rel as configuration, or runs it or files in it
// because of its configuration: core.hooksPath, core.fsmonitor, filters. It checks the
// repositories that contain rel and the user's own configuration. Configuration files that
// cannot be read are skipped.
func (w *Dir) namedByGit(rel string) bool {
	file := filepath.Join(w.real, filepath.FromSlash(rel))
	for top := filepath.Dir(file); ; top = filepath.Dir(top) {
		_, err := os.Lstat(filepath.Join(top, ".git"))
		if (err == nil || top == w.real) && w.namedIn(top, file) {
			return true
		}
		if top == filepath.Dir(top) {
			return false
		}
	}
}

// namedIn is like namedByGit, for the repository whose working tree is top.
func (w *Dir) namedIn(top, file string) bool {
	for _, dir := range gitFolders(top) {
		if isHook(file, filepath.Join(dir, "hooks")) {
			return true
		}
	}
	is := false
	all := w.eachNamed(top, func(key, path string) bool {
		is = isNamedBy(path, file, top) || (key == "core.hookspath" || key == "init.templatedir") && isHook(file, path)
		return !is
	})
	return is || !all
}

// eachNamed calls visit with the absolute path of each file that the configuration
// of a repository may refer to, until visit returns false. It returns false if
// there are too many configuration files to read them all.
func (w *Dir) eachNamed(top string, visit func(key, path string) bool) (all bool) {
	configs := w.userConfigs()
	for _, dir := range gitFolders(top) {
		configs = append(configs, filepath.Join(dir, "config"), filepath.Join(dir, "config.worktree"))
	}
	home, _ := w.userFolders()
	for i := 0; i < len(configs); i++ {
		for key, value := range configEntries(string(readOutside(configs[i]))) {
			paths, base := pathsIn(value), top
			switch key {
			case "include.path", "includeif.path":
				paths, base = []string{value}, filepath.Dir(configs[i])
				if path := from(base, expand.Home(value, home)); !slices.Contains(configs, path) {
					configs = append(configs, path)
				}
			case "core.hookspath", "init.templatedir":
				paths = []string{value}
			case "safe.directory", "maintenance.repo", "gui.recentrepo", "core.worktree", "remote.url", "remote.pushurl", "submodule.url":
				paths = nil // these refer to repositories
			}
			for _, path := range paths {
				if !visit(key, from(base, expand.Home(path, home))) {
					return true
				}
			}
		}
		if i > maxConfigs {
			return false
		}
	}
	return true
}

// pathsIn returns the words of a value that may be paths. The value may be a
// shell command.
func pathsIn(value string) []string {
	words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`!();&|<>=", r) })
	return slices.DeleteFunc(append(words, value), func(word string) bool { return !strings.ContainsAny(word, "./") })
}

// isNamedBy reports whether file is path or below it, by name or through links.
// A folder that contains the whole working tree does not count.
func isNamedBy(path, file, top string) bool {
	if liesIn(file, path) && !liesIn(top, path) {
		return true
	}
	real := withoutLinks(path)
	return liesIn(file, real) && !liesIn(top, real)
}

// withoutLinks resolves the links in the existing part of a path, and dangling links.
func withoutLinks(path string) string {
	const most = 40 // as in Linux
	return followLinks(path, most)
}

func followLinks(path string, most int) string {
	if real, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return real
	}
	dir := followLinks(filepath.Dir(path), most)
	path = filepath.Join(dir, filepath.Base(path))
	if target, err := os.Readlink(path); err == nil && most > 0 {
		return followLinks(from(dir, target), most-1)
	}
	return path
}

// isHook reports whether a folder of hooks contains a link to file.
func isHook(file, hooks string) bool {
	info, err := os.Stat(file)
	if err != nil {
		return false
	}
	entries, _ := os.ReadDir(hooks) // the folder may not exist
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		hook, err := os.Stat(filepath.Join(hooks, e.Name()))
		return err == nil && os.SameFile(hook, info)
	})
}

// gitFolders returns the absolute paths of the git folders of a working tree:
// .git or the folder it refers to, and the one shared with other working trees.
func gitFolders(top string) []string {
	dir := filepath.Join(top, ".git")
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeType == 0 {
		target, _ := strings.CutPrefix(strings.TrimSpace(string(readOutside(dir))), "gitdir:")
		dir = from(top, strings.TrimSpace(target))
	}
	if common := strings.TrimSpace(string(readOutside(filepath.Join(dir, "commondir")))); common != "" {
		return []string{dir, from(dir, common)}
	}
	return []string{dir}
}

func from(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}
