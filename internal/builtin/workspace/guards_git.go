package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/atomicfile"
)

// allNamedPaths returns the paths in the workspace that the git configuration of its
// repositories, of the enclosing repository and of the user refers to, and the
// targets of hooks that are links.
func (w *Dir) allNamedPaths(repositories []string) []string {
	tops := []string{w.real}
	for _, rel := range repositories {
		tops = append(tops, filepath.Dir(w.absolute(rel)))
	}
	for top := filepath.Dir(w.real); top != filepath.Dir(top); top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			tops = append(tops, top)
			break
		}
	}
	var out []string
	for _, top := range tops {
		for _, p := range w.namesOf(top) {
			out = w.appendInside(out, withoutLinks(p))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// appendInside appends path, which is absolute with links resolved, as a path relative
// to the workspace, if it is inside the workspace and not in its git folder.
func (w *Dir) appendInside(to []string, path string) []string {
	rel, err := filepath.Rel(w.real, path)
	if err != nil || !filepath.IsLocal(rel) || rel == "." || isGit(strings.Split(rel, "/")[0]) {
		return to
	}
	return append(to, filepath.ToSlash(rel))
}

// namesOf returns the paths that the configuration of one repository refers to,
// and the hooks that are links.
func (w *Dir) namesOf(top string) []string {
	var out []string
	hooks := func(dir string) {
		entries, _ := os.ReadDir(dir) // the folder may not exist
		for _, e := range entries {
			if e.Type() == fs.ModeSymlink {
				out = append(out, filepath.Join(dir, e.Name()))
			}
		}
	}
	for _, dir := range gitFolders(top) {
		hooks(filepath.Join(dir, "hooks"))
	}
	w.eachNamed(top, func(key, path string) bool {
		out = append(out, path)
		if key == "core.hookspath" {
			hooks(path)
		}
		return true
	})
	return out
}

// linkedWorktree returns the git folder of a linked worktree and the one that it
// shares with others, links resolved, or "" if top is not a linked worktree. Both
// must refer to each other, because any program can write a file .git that names a
// folder.
func linkedWorktree(top string) (folder, common string) {
	if info, err := os.Lstat(filepath.Join(top, ".git")); err != nil || !info.Mode().IsRegular() {
		return "", ""
	}
	folders := gitFolders(top)
	if len(folders) != 2 {
		return "", ""
	}
	folder, common = withoutLinks(folders[0]), withoutLinks(folders[1])
	back := withoutLinks(strings.TrimSpace(string(readOutside(filepath.Join(folder, "gitdir")))))
	for _, name := range []string{"HEAD", "objects", "refs", "config"} {
		if _, err := os.Stat(filepath.Join(common, name)); err != nil {
			return "", ""
		}
	}
	if filepath.Dir(folder) != filepath.Join(common, "worktrees") || back != withoutLinks(filepath.Join(top, ".git")) {
		return "", ""
	}
	return folder, common
}

// disarm removes the hooks and the settings that can run programs from a new
// repository, and returns what it removed. Unless remove is set, it only
// returns what it would remove.
func (w *Dir) disarm(rel string, remove bool) (removed []string, err error) {
	var failed []error
	removeAll := func(rel string) error {
		if !remove {
			return nil
		}
		return w.root.RemoveAll(rel)
	}
	hooks := path.Join(rel, "hooks")
	if entries, err := fs.ReadDir(w.root.FS(), hooks); err == nil {
		for _, e := range entries {
			if hook := path.Join(hooks, e.Name()); !strings.HasSuffix(e.Name(), ".sample") {
				if failed = append(failed, removeAll(hook)); failed[len(failed)-1] == nil {
					removed = append(removed, hook)
				}
			}
		}
	} else if info, err := w.root.Lstat(hooks); err == nil && !info.IsDir() {
		failed, removed = append(failed, removeAll(hooks)), append(removed, hooks)
	}
	for _, name := range []string{"config", "config.worktree"} {
		settings, err := w.disarmConfig(path.Join(rel, name), remove)
		removed, failed = append(removed, settings...), append(failed, err)
	}
	return removed, errors.Join(failed...)
}

// maxConfig limits the size of git files that are rewritten, in bytes; larger
// ones are removed.
const maxConfig = 1 << 20

// disarmConfig removes all settings that can run programs from a git configuration
// file.
func (w *Dir) disarmConfig(rel string, remove bool) (removed []string, err error) {
	return w.reduce(rel, remove, func(data string, kept *bytes.Buffer) (removed []string) {
		for e := range configSettings(data) {
			if !isHarmless(e.name, e.value) {
				removed = append(removed, rel+": "+e.name)
				continue
			}
			fmt.Fprintf(kept, "[%s]\n\t%s = %s\n", e.header, e.key, quoteConfig(e.value))
		}
		return removed
	})
}

// rebaseSteps is the file in a git folder that lists the steps of an unfinished rebase.
// Its commands run at the next "git rebase --continue".
const rebaseSteps = "rebase-merge/git-rebase-todo"

// disarmRebase removes the commands that are not in known from a list of steps.
func (w *Dir) disarmRebase(rel string, known []string, remove bool) (removed []string, err error) {
	return w.reduce(rel, remove, func(data string, kept *bytes.Buffer) (removed []string) {
		for line := range strings.Lines(data) {
			if isExec(line) && !slices.Contains(known, line) {
				removed = append(removed, rel+": "+strings.TrimSpace(line))
				continue
			}
			kept.WriteString(line)
		}
		return removed
	})
}

// commandsOf returns the steps of a rebase that run commands.
func (w *Dir) commandsOf(rel string) []string {
	if info, err := w.root.Lstat(rel); err != nil || info.Size() > maxConfig {
		return nil
	}
	data, err := w.root.ReadFile(rel)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Collect(strings.Lines(string(data))), func(line string) bool { return !isExec(line) })
}

func isExec(line string) bool {
	words := strings.Fields(line)
	return len(words) > 0 && (words[0] == "exec" || words[0] == "x")
}

// reduce replaces the content of a file with what keep writes, unless keep removed
// nothing. It deletes the file if it is too large or not a regular file. Unless remove is
// set, nothing is changed.
func (w *Dir) reduce(rel string, remove bool, keep func(data string, kept *bytes.Buffer) (removed []string)) (removed []string, err error) {
	info, err := w.root.Lstat(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxConfig) {
		if !remove {
			return []string{rel}, nil
		}
		return []string{rel}, w.root.RemoveAll(rel)
	}
	data, err := w.root.ReadFile(rel)
	if err != nil {
		return nil, err
	}
	var kept bytes.Buffer
	if removed = keep(string(data), &kept); len(removed) == 0 || !remove {
		return removed, nil
	}
	folder, err := w.root.OpenRoot(path.Dir(rel))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return removed, atomicfile.Write(folder, path.Base(rel), kept.Bytes(), atomicfile.Options{Mode: info.Mode().Perm()})
}

func quoteConfig(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(value) + `"`
}

// isHarmless reports whether a git setting is known not to run anything and not
// to refer to other files.
func isHarmless(name, value string) bool {
	switch name {
	case "core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase", "core.precomposeunicode", "core.symlinks",
		"core.autocrlf", "core.eol", "core.safecrlf", "core.sharedrepository", "core.sparsecheckout", "core.sparsecheckoutcone", "core.longpaths",
		"remote.fetch", "remote.tagopt", "remote.mirror", "remote.promisor", "remote.partialclonefilter", "remote.prune",
		"branch.remote", "branch.merge", "branch.rebase", "user.name", "user.email", "init.defaultbranch", "pull.rebase", "pull.ff", "push.default",
		"submodule.active", "submodule.branch", "lfs.repositoryformatversion", "gc.auto", "gc.autodetach", "gc.autopacklimit":
		return true
	case "remote.url", "remote.pushurl", "submodule.url":
		scheme, _, found := strings.Cut(value, "::")
		return !found || strings.ContainsAny(scheme, "/:") // ext::sh -c … is a command
	}
	return strings.HasPrefix(name, "extensions.")
}
