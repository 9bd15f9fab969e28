package workspace

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Repositories outside a folder .git are guarded like one: git treats any folder
// with the right files as a repository and runs what its config says.

// inRepository returns the rest of rel below a folder that git treats as a
// repository, or would once all the written files exist.
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

// liesIn reports whether a path is another or below it, ignoring case.
func liesIn(file, folder string) bool {
	file, folder = strings.ToLower(file), strings.ToLower(folder)
	return file == folder || strings.HasPrefix(file, folder+"/")
}

// namedByGit reports whether the repository of the workspace runs rel, or files
// in a folder that it names: core.hooksPath, core.fsmonitor, filters. A config
// that cannot be read names nothing.
func (w *Dir) namedByGit(rel string) bool {
	for _, config := range w.gitConfigs() {
		for line := range strings.SplitSeq(string(readOutside(config)), "\n") {
			_, value, ok := strings.Cut(line, "=")
			if !ok {
				continue
			}
			value = configValue(value)
			for _, word := range append(strings.Fields(value), value) {
				if w.isNamedBy(strings.TrimPrefix(word, "!"), rel) {
					return true
				}
			}
		}
	}
	return false
}

func (w *Dir) isNamedBy(word, rel string) bool {
	if !strings.ContainsAny(word, "./") && !w.isFolder(word) || strings.Contains(word, "://") {
		return false // a word, not a path
	}
	if filepath.IsAbs(word) {
		below, err := filepath.Rel(w.real, word)
		if err != nil {
			return false
		}
		word = below
	}
	word = path.Clean(filepath.ToSlash(word))
	return word != "." && filepath.IsLocal(word) && liesIn(rel, word)
}

func (w *Dir) isFolder(name string) bool {
	info, err := os.Stat(filepath.Join(w.real, name))
	return err == nil && info.IsDir() && name != ""
}

// gitConfigs returns the configuration files of the workspace's repository, by
// absolute path, including those referred to by a .git that is a file.
func (w *Dir) gitConfigs() []string {
	dir := filepath.Join(w.real, ".git")
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeType == 0 {
		target, _ := strings.CutPrefix(strings.TrimSpace(string(readOutside(dir))), "gitdir:")
		dir = from(w.real, strings.TrimSpace(target))
	}
	out := []string{filepath.Join(dir, "config"), filepath.Join(dir, "config.worktree")}
	if common := strings.TrimSpace(string(readOutside(filepath.Join(dir, "commondir")))); common != "" {
		out = append(out, filepath.Join(from(dir, common), "config"))
	}
	return out
}

func from(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}
