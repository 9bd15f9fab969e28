package guards

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/toolreg/toolreg/internal/atomicfile"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/git"
)

// allNamedPaths returns the paths in the workspace that the git configuration of its
// repositories, of the enclosing repository and of the user refers to, and the
// targets of hooks that are links.
func (t *Tree) allNamedPaths(repositories []string) []string {
	tops := []string{t.real}
	for _, rel := range repositories {
		tops = append(tops, filepath.Dir(t.absolute(rel)))
	}
	if top := git.Top(filepath.Dir(t.real)); top != "" {
		tops = append(tops, top)
	}
	var out []string
	for _, path := range t.user.Configs() {
		out = t.appendChain(out, path)
	}
	for _, top := range tops {
		for _, p := range t.user.Named(top) {
			out = t.appendChain(out, p)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// appendChain appends the file that a path leads to, and the links on the way to it, as
// appendInside does.
func (t *Tree) appendChain(to []string, path string) []string {
	real := git.FollowLinks(path, func(link string) { to = t.appendInside(to, link) })
	return t.appendInside(to, real)
}

// appendInside appends path, which is absolute with links resolved, as a path relative
// to the workspace, if it is inside the workspace and not in its git folder.
func (t *Tree) appendInside(to []string, path string) []string {
	rel, _ := filepath.Rel(t.real, path) // with an error it is not local
	if !filepath.IsLocal(rel) || rel == "." || workspace.IsGit(strings.Split(rel, "/")[0]) {
		return to
	}
	return append(to, filepath.ToSlash(rel))
}

// disarm removes the hooks and the settings that can run programs from a new
// repository, and returns what it removed. Unless remove is set, it only
// returns what it would remove.
func (t *Tree) disarm(rel string, remove bool) (removed []string, err error) {
	var failed []error
	removeAll := func(rel string) error {
		if !remove {
			return nil
		}
		return t.root.RemoveAll(rel)
	}
	hooks := path.Join(rel, "hooks")
	if entries, err := fs.ReadDir(t.root.FS(), hooks); err == nil {
		for _, e := range entries {
			if hook := path.Join(hooks, e.Name()); !strings.HasSuffix(e.Name(), ".sample") {
				if failed = append(failed, removeAll(hook)); failed[len(failed)-1] == nil {
					removed = append(removed, hook)
				}
			}
		}
	} else if info, err := t.root.Lstat(hooks); err == nil && !info.IsDir() {
		failed, removed = append(failed, removeAll(hooks)), append(removed, hooks)
	}
	for _, name := range []string{"config", "config.worktree"} {
		settings, err := t.disarmConfig(path.Join(rel, name), remove)
		removed, failed = append(removed, settings...), append(failed, err)
	}
	return removed, errors.Join(failed...)
}

// maxConfig limits the size of git files that are rewritten, in bytes; larger
// ones are removed.
const maxConfig = 1 << 20

// disarmConfig removes all settings that can run programs from a git configuration
// file.
func (t *Tree) disarmConfig(rel string, remove bool) (removed []string, err error) {
	return t.reduce(rel, remove, func(data string, kept *bytes.Buffer) (removed []string) {
		for e := range git.Settings(data) {
			if !isHarmless(e.Name, e.Value) {
				removed = append(removed, rel+": "+e.Name)
				continue
			}
			fmt.Fprintf(kept, "[%s]\n\t%s = %s\n", e.Header, e.Key, quoteConfig(e.Value))
		}
		return removed
	})
}

// unfinished returns the files in a git folder that describe an unfinished operation and can
// name a command, which the next "git rebase --continue" or "git cherry-pick --continue"
// runs.
func unfinished(dir string) []string {
	return []string{path.Join(dir, "rebase-merge/git-rebase-todo"),
		path.Join(dir, "rebase-merge/strategy"), path.Join(dir, "sequencer/opts")}
}

// disarmSteps removes the lines that run commands and are not in known.
func (t *Tree) disarmSteps(rel string, known []string, remove bool) (removed []string, err error) {
	return t.reduce(rel, remove, func(data string, kept *bytes.Buffer) (removed []string) {
		for line := range strings.Lines(data) {
			if mayRun(path.Base(rel), line) && !slices.Contains(known, line) {
				removed = append(removed, rel+": "+strings.TrimSpace(line))
				continue
			}
			kept.WriteString(line)
		}
		return removed
	})
}

// commandsOf returns the lines of a file of unfinished that run commands.
func (t *Tree) commandsOf(rel string) []string {
	if info, err := t.root.Lstat(rel); err != nil || !info.Mode().IsRegular() || info.Size() > maxConfig {
		return nil
	}
	data, err := t.root.ReadFile(rel)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Collect(strings.Lines(string(data))),
		func(line string) bool { return !mayRun(path.Base(rel), line) })
}

// mayRun reports whether a line of a file of unfinished can run a command. A merge strategy that
// git does not know is the name of a program, which may contain slashes.
func mayRun(file, line string) bool {
	words := strings.Fields(strings.ToLower(line))
	switch {
	case len(words) == 0:
		return false
	case file == "strategy":
		return len(words) > 1 || !isStrategy(words[0])
	case file == "opts":
		key, value, _ := strings.Cut(strings.Join(words, ""), "=")
		return strings.Contains(key, "strategy") && key != "strategy-option" &&
			!(key == "strategy" && isStrategy(value))
	}
	return words[0] == "exec" || words[0] == "x"
}

func isStrategy(name string) bool {
	return slices.Contains([]string{"ort", "recursive", "resolve", "octopus", "ours", "subtree"}, name)
}

// reduce replaces the content of a file with what keep writes, unless keep removed
// nothing. It deletes the file if it is too large or not a regular file, or if the new content
// cannot be written. Unless remove is
// set, nothing is changed.
func (t *Tree) reduce(rel string, remove bool,
	keep func(data string, kept *bytes.Buffer) (removed []string)) (removed []string, err error) {
	info, err := t.root.Lstat(rel)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxConfig) {
		if !remove {
			return []string{rel}, nil
		}
		return []string{rel}, t.root.RemoveAll(rel)
	}
	data, err := t.root.ReadFile(rel)
	if err != nil {
		return nil, err
	}
	var kept bytes.Buffer
	if removed = keep(string(data), &kept); len(removed) == 0 || !remove {
		return removed, nil
	}
	folder, err := t.root.OpenRoot(path.Dir(rel))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	if err = atomicfile.Write(folder, path.Base(rel), kept.Bytes(),
		atomicfile.Options{Mode: info.Mode().Perm()}); err == nil {
		return removed, nil
	}
	if t.root.RemoveAll(rel) == nil { // for example on a disk that the program has filled
		return []string{rel}, nil
	}
	return removed, err
}

func quoteConfig(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(value) + `"`
}

// isHarmless reports whether a git setting is known not to run anything and not
// to refer to other files.
func isHarmless(name, value string) bool {
	switch name {
	case "core.repositoryformatversion", "core.filemode", "core.bare",
		"core.logallrefupdates", "core.ignorecase", "core.precomposeunicode", "core.symlinks",
		"core.autocrlf", "core.eol", "core.safecrlf", "core.sharedrepository",
		"core.sparsecheckout", "core.sparsecheckoutcone", "core.longpaths",
		"remote.fetch", "remote.tagopt", "remote.mirror",
		"remote.promisor", "remote.partialclonefilter", "remote.prune",
		"branch.remote", "branch.merge", "branch.rebase", "user.name", "user.email",
		"init.defaultbranch", "pull.rebase", "pull.ff", "push.default",
		"submodule.active", "submodule.branch", "lfs.repositoryformatversion",
		"gc.auto", "gc.autodetach", "gc.autopacklimit",
		"extensions.objectformat", "extensions.compatobjectformat",
		"extensions.refstorage", "extensions.partialclone", "extensions.worktreeconfig",
		"extensions.relativeworktrees", "extensions.preciousobjects", "extensions.noop":
		return true
	case "remote.url", "remote.pushurl", "submodule.url":
		scheme, _, found := strings.Cut(value, "::")
		return !found || strings.ContainsAny(scheme, "/:") // ext::sh -c … is a command
	}
	return false
}

// acceptsConfig reports whether a program may write new settings of a repository. It accepts only
// what commands such as "git branch" and "git push -u" write: the remote branch that a branch
// follows. The remote must have existed before, because a new one leads later commands wherever the
// program chooses. It compares the text and not its meaning according to [git.Settings], so that
// git cannot read it in another way.
func acceptsConfig(before, after string) bool {
	if strings.Contains(before+after, "\\\n") || strings.Contains(before+after, "\x00") {
		return false // lines that continue
	}
	others, branches := configSections(before)
	same, changed := configSections(after)
	if !slices.Equal(others, same) {
		return false
	}
	known := strings.Split(strings.Join(branches, ""), "\n")
	remotes := []string{"."}
	for s := range git.Settings(before) {
		if name, ok := strings.CutPrefix(s.Header, `remote "`); ok && s.Key == "url" {
			remotes = append(remotes, strings.TrimSuffix(name, `"`))
		}
	}
	line := regexp.MustCompile(`^\t(remote|pushRemote|merge|rebase) = ([A-Za-z0-9._/+-]+)$`)
	for _, section := range changed {
		_, body, _ := strings.Cut(strings.TrimSuffix(section, "\n"), "\n")
		for text := range strings.SplitSeq(body, "\n") {
			m := line.FindStringSubmatch(text)
			switch {
			case text == "", slices.Contains(known, text):
			case m == nil, strings.HasSuffix(strings.ToLower(m[1]), "remote") && !slices.Contains(remotes, m[2]):
				return false
			}
		}
	}
	return true
}

// configSections splits git's settings into the texts of the sections of branches, and of all others.
func configSections(text string) (others, branches []string) {
	branch := regexp.MustCompile(`^\[branch "[^"\\\r\n\]]+"\]\n`)
	start, at := 0, 0
	end := func() {
		if section := text[start:at]; branch.MatchString(section) {
			branches = append(branches, section)
		} else if section != "" {
			others = append(others, strings.TrimSuffix(section, "\n"))
		}
		start = at
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), "[") {
			end()
		}
		at += len(line)
	}
	end()
	return others, branches
}
