package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Guards records the files and folders of the workspace that other programs use,
// as they were before a confined program ran. The sandbox keeps the program from
// changing them, and Clean removes those that it added. Files that another
// program may have created or changed meanwhile stay. node_modules is left out:
// other programs do not use its files this way, and there may be thousands.
type Guards struct {
	// ReadOnly and Fixed are absolute paths that exist: files and folders that
	// must not be changed, and folders that must not be renamed.
	ReadOnly, Fixed []string
	// Common is the absolute path of the git folder outside the workspace that a
	// linked worktree shares with other worktrees, or "". The program must be able to
	// write there.
	Common string

	dir    *Dir
	known  map[string]known    // guarded files, folders and repositories, by path
	named  []string            // paths in git's configuration and targets of guarded links; they need not exist
	around map[string]known    // the parent folders of known
	closed []known             // folders that could not be read
	rebase map[string][]string // commands of unfinished rebases, by the path of their file
	common *Guards             // the guards of Common
}

// known is a file or folder that existed before the program ran.
type known struct {
	fs.FileInfo
	target string // of a link, absolute, links resolved
}

// is reports whether now is the same file, perhaps at another path. For links the target
// decides, because a link can be moved, or removed and created again with the same
// inode number.
func (k known) is(now known) bool {
	return os.SameFile(k.FileInfo, now.FileInfo) && k.target == now.target
}

// look returns the file at rel, without following a link.
func (w *Dir) look(rel string) (known, error) {
	info, err := w.root.Lstat(rel)
	k := known{FileInfo: info}
	if err == nil && info.Mode().Type() == fs.ModeSymlink {
		k.target = withoutLinks(w.absolute(rel))
	}
	return k, err
}

// Guards scans the whole workspace.
func (w *Dir) Guards(ctx context.Context) (*Guards, error) {
	found, err := w.scan(ctx, func(string) error { return nil })
	if err != nil {
		return nil, err
	}
	g := &Guards{dir: w, known: map[string]known{}, around: map[string]known{}, rebase: map[string][]string{}, named: w.allNamedPaths(found.repositories)}
	for _, rel := range found.guarded {
		if k, err := w.look(rel); err == nil && k.target != "" {
			g.named = w.appendInside(g.named, k.target)
		}
	}
	for _, rel := range slices.Concat(found.guarded, found.closed, w.existing(g.named)) {
		g.add(rel)
		if slices.Contains(found.closed, rel) {
			g.closed = append(g.closed, g.known[rel])
		}
		g.ReadOnly = append(g.ReadOnly, w.absolute(rel))
		for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
			if path.Base(dir)[0] == '.' && !slices.Contains(g.Fixed, w.absolute(dir)) { // such as .vscode, whose name makes its files guarded
				g.Fixed = append(g.Fixed, w.absolute(dir))
			}
		}
	}
	for _, rel := range found.repositories {
		g.add(rel)
		g.Fixed = append(g.Fixed, w.absolute(rel))
		steps := path.Join(rel, rebaseSteps)
		g.rebase[steps] = w.commandsOf(steps)
		for _, inner := range w.existing(insideRepository(rel)) {
			g.add(inner)
			g.ReadOnly = append(g.ReadOnly, w.absolute(inner))
		}
	}
	return g, g.addCommon(ctx)
}

func (g *Guards) add(rel string) {
	k, err := g.dir.look(rel)
	around, failed := g.dir.look(path.Dir(rel))
	if err == nil && failed == nil {
		g.known[rel], g.around[rel] = k, around
	}
}

// addCommon adds the git folder of a linked worktree, with its submodules and its
// other worktrees.
func (g *Guards) addCommon(ctx context.Context) error {
	folder, common := linkedWorktree(g.dir.real)
	if common == "" {
		return nil
	}
	var err error
	if g.common, err = g.dir.sharedWith(common).Guards(ctx); err != nil {
		return err
	}
	g.Common = common
	g.Fixed = append(g.Fixed, g.common.Fixed...)
	g.ReadOnly = append(append(g.ReadOnly, filepath.Join(folder, "gitdir")), g.common.ReadOnly...)
	return nil
}

// isKnown reports whether the file at rel existed before, perhaps at another
// path: a parent folder may have been renamed.
func (g *Guards) isKnown(rel string) bool {
	now, err := g.dir.look(rel)
	if err != nil {
		return true // nothing to remove
	}
	if was, ok := g.known[rel]; ok && was.is(now) {
		return true
	}
	for _, was := range g.known {
		if was.is(now) {
			return true
		}
	}
	return false
}

// Cleaned is the result of [Guards.Clean]. Paths are relative to the workspace. A git
// setting is given as the path of its file and its name.
type Cleaned struct {
	Removed []string // created by the program
	Kept    []string // possibly created or changed by another program
}

// Clean removes the guarded files and folders that did not exist before and were created by
// the program. From new repositories it removes only the hooks and the settings that run
// programs. Other new or changed files stay. created reports whether the program tried to
// create a file with this name in any folder. Call Clean after the program has exited.
func (g *Guards) Clean(ctx context.Context, created func(name string) bool) (Cleaned, error) {
	var out Cleaned
	found, err := g.dir.scan(ctx, g.unlock)
	if err != nil {
		return out, err
	}
	var failed []error
	for _, rel := range found.closed {
		if !g.isKnown(rel) {
			failed = append(failed, fmt.Errorf("the folder %s cannot be read", g.dir.absolute(rel)))
		}
	}
	if g.common != nil { // first, because files that refer to a worktree there may stay if it is clean
		common, err := g.common.Clean(ctx, created)
		failed = append(failed, err)
		for _, name := range common.Removed {
			out.Removed = append(out.Removed, g.Common+"/"+name)
		}
		for _, name := range common.Kept {
			out.Kept = append(out.Kept, g.Common+"/"+name)
		}
	}
	note := func(made bool, names []string, err error) {
		if made {
			out.Removed = append(out.Removed, names...)
		} else {
			out.Kept = append(out.Kept, names...)
		}
		failed = append(failed, err)
	}
	remove := func(rel string) {
		if g.isKnown(rel) {
			return
		}
		made := g.isCreatedByProgram(rel, created)
		if made {
			if err := g.removeAll(ctx, rel); err != nil {
				failed = append(failed, err)
				return
			}
		}
		note(made, []string{rel}, nil)
	}
	for _, rel := range slices.Concat(found.guarded, g.dir.existing(g.named)) {
		if !g.refersInside(rel, found.repositories) {
			remove(rel)
		}
	}
	for _, rel := range found.repositories {
		steps := path.Join(rel, rebaseSteps)
		_ = g.unlock(steps) // if this fails, so does disarmRebase
		made := created(path.Base(steps))
		commands, err := g.dir.disarmRebase(steps, g.rebase[steps], made)
		note(made, commands, err)
		if !g.isKnown(rel) {
			for _, inner := range insideRepository(rel) {
				_ = g.unlock(inner) // if this fails, so does disarm
			}
			made := created(path.Base(rel)) || created("objects") || created("refs")
			settings, err := g.dir.disarm(rel, made)
			note(made, settings, err)
			if common := path.Join(rel, "commondir"); !g.refersInside(common, found.repositories) {
				remove(common)
			}
			continue
		}
		for _, inner := range insideRepository(rel) {
			remove(inner)
		}
	}
	for _, names := range []*[]string{&out.Removed, &out.Kept} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return out, errors.Join(failed...)
}

// isCreatedByProgram reports whether it is certain that the program created the new file at rel.
func (g *Guards) isCreatedByProgram(rel string, created func(name string) bool) bool {
	if was, ok := g.known[rel]; ok && was.target == "" {
		// The sandbox keeps programs from replacing a file unless they replace its folder.
		if now, err := g.dir.look(path.Dir(rel)); err == nil && g.around[rel].is(now) {
			return false
		}
	}
	for at := rel; at != "."; at = path.Dir(at) {
		name := path.Base(at)
		if (at == rel || name[0] == '.' && !slices.Contains(g.Fixed, g.dir.absolute(at))) && created(name) {
			return true
		}
	}
	return false
}

// refersInside reports whether rel is a file .git or commondir that refers to a
// repository in the workspace, which is guarded itself, or to the repository of its
// linked worktree.
func (g *Guards) refersInside(rel string, repositories []string) bool {
	name := path.Base(rel)
	info, err := g.dir.root.Lstat(rel)
	if name != ".git" && name != "commondir" || err != nil || !info.Mode().IsRegular() {
		return false
	}
	text, _ := strings.CutPrefix(strings.TrimSpace(string(readOutside(g.dir.absolute(rel)))), "gitdir:")
	target := withoutLinks(from(filepath.Dir(g.dir.absolute(rel)), strings.TrimSpace(text)))
	if g.Common != "" && (target == g.Common || filepath.Dir(target) == filepath.Join(g.Common, "worktrees")) {
		return true
	}
	return slices.ContainsFunc(repositories, func(repository string) bool { return g.dir.absolute(repository) == target })
}
