package guards

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/git"
	"github.com/toolreg/toolreg/internal/sandbox"
)

// Other programs replace files in git's folders while the program runs: git itself renames a new
// config over the old one. The kernel protects files, not names, so toolreg makes the changes in
// these folders for the program, and refuses those that could make git run something.

// broker adds the outermost repositories to Brokered. A folder that contains other files besides
// those of a bare repository is left out. workspace is where the program runs.
func (g *Guards) broker(repositories []string, workspace string) {
	folders := slices.DeleteFunc(slices.Clone(repositories),
		func(rel string) bool { return !g.tree.isOnlyRepository(rel) })
	for _, rel := range folders {
		if slices.ContainsFunc(folders, func(outer string) bool { return outer != rel && isBelow(rel, outer) }) {
			continue
		}
		p := protection{repositories: []string{"."}}
		for _, repository := range repositories {
			if repository == rel || !isBelow(repository, rel) {
				continue
			}
			inner := relative(rel, repository)
			p.repositories = append(p.repositories, inner)
			if isWorktree(inner) {
				switch tree := g.tree.worktreeOf(repository); {
				case tree == workspace: // the program's own worktree
				case isWithin(tree, workspace):
					p.visible, g.Removable = append(p.visible, inner), append(g.Removable, tree)
				default:
					p.hidden = append(p.hidden, inner)
				}
			}
		}
		b := sandbox.Brokered{Path: g.tree.absolute(rel), Refuses: p.refuses,
			Accepts: func(config, before, after string) bool {
				ok := acceptsConfig(before, after)
				if ok {
					g.accepted[path.Join(rel, config)] = after
				}
				return ok
			}}
		for _, repository := range p.repositories {
			if isWorktree(repository) {
				continue // the program may remove it
			}
			b.Rewritten = append(b.Rewritten, path.Join(repository, "config"))
			// Git writes many files there, and none of them names a command.
			for _, name := range []string{"objects", "refs", "logs"} {
				if info, err := g.tree.root.Lstat(path.Join(rel, repository, name)); err == nil && info.IsDir() {
					b.Open = append(b.Open, path.Join(repository, name))
				}
			}
		}
		g.Brokered = append(g.Brokered, b)
	}
}

// isOnlyRepository reports whether a repository's folder contains nothing else.
func (t *Tree) isOnlyRepository(rel string) bool {
	if workspace.IsGit(path.Base(rel)) || t.ofGit && rel == "." {
		return true
	}
	if rel == "." {
		return false
	}
	entries, err := fs.ReadDir(t.root.FS(), rel)
	return err == nil && !slices.ContainsFunc(entries,
		func(e fs.DirEntry) bool { return !ofRepository(e.Name()) && e.Name() != "description" })
}

func isWorktree(repository string) bool { return strings.HasPrefix(repository, "worktrees/") }

// worktreeOf returns the absolute path of the linked worktree whose git folder is at rel.
func (t *Tree) worktreeOf(rel string) string { return filepath.Dir(git.Worktree(t.absolute(rel))) }

// protection decides which changes in a git folder a program must not make.
type protection struct {
	repositories []string // in the folder when the program started, relative; "." is the folder itself
	visible      []string // those of linked worktrees that the program sees, but not the one in which it runs
	// hidden are those of linked worktrees that it does not see, so that git in the
	// sandbox takes them for removed.
	hidden []string
}

// refuses is as in [sandbox.Brokered]. What the program creates itself is examined when it
// has ended.
func (p protection) refuses(rel string, change sandbox.Change, made func(string) bool) bool {
	repository := "."
	for _, r := range p.repositories {
		if isBelow(rel, r) && len(r) > len(repository) {
			repository = r
		}
		if change == sandbox.Moves && isBelow(r, rel) {
			return true
		}
	}
	below := strings.Split(relative(repository, rel), "/")
	switch {
	case change == sandbox.Removes && slices.Contains(p.visible, repository):
		return false // as "git worktree remove" does
	case change != sandbox.Writes && slices.Contains(p.hidden, repository) && !strings.HasSuffix(rel, ".lock"):
		return true
	case change != sandbox.Writes && rel == repository:
		return true
	case isActedUpon(below[0]) && (len(below) == 1 || strings.EqualFold(below[0], "hooks")):
		return true
	}
	if below[0] != "modules" && below[0] != "worktrees" || len(below) < 3 {
		return false
	}
	// The repository is new and may be another program's.
	for at := path.Dir(rel); at != "." && at != repository; at = path.Dir(at) {
		if made(at) {
			return false
		}
	}
	return change == sandbox.Moves ||
		slices.ContainsFunc(below[2:], isActedUpon) && !(below[0] == "worktrees" && change == sandbox.Removes)
}

// isActedUpon reports whether a file or folder of a repository with this name makes git run
// programs, or leads it to another repository. git writes a new file under its name plus ".lock".
func isActedUpon(name string) bool {
	name, _ = strings.CutSuffix(strings.ToLower(name), ".lock")
	return slices.Contains([]string{"hooks", "config", "config.worktree", "commondir", "gitdir"}, name)
}

// isBelow reports whether a path is a folder or below it, both relative to the same folder.
func isBelow(rel, folder string) bool {
	return folder == "." || rel == folder || strings.HasPrefix(rel, folder+"/")
}

// relative returns the path of rel, which is below a folder, relative to the folder.
func relative(folder, rel string) string {
	out, err := filepath.Rel(folder, rel)
	if err != nil {
		return rel
	}
	return filepath.ToSlash(out)
}
