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

// Guards are the files and folders of the workspace that other programs act upon,
// as they were before a confined program ran: its sandbox keeps it from changing
// those, and Clean removes what it has added. What somebody else may have made or
// changed meanwhile stays. Dependencies in node_modules are left
// out: nothing acts upon what lies there, and there may be thousands.
type Guards struct {
	// ReadOnly and Fixed are absolute paths of what exists: what must not be
	// changed, and folders that must not be renamed.
	ReadOnly, Fixed []string
	// Common is the git folder outside the workspace that a linked worktree shares
	// with others, absolute, and that the program needs to write; "" if there is none.
	Common string

	dir    *Dir
	known  map[string]known    // guarded files, folders and repositories, by path
	named  []string            // what git's configuration and guarded links name, whether or not it exists
	around map[string]known    // the folders that known files are in
	closed []known             // folders that could not be read
	rebase map[string][]string // commands of unfinished rebases, by the file that has them
	common *Guards             // of Common
}

// known is something that was there before.
type known struct {
	fs.FileInfo
	target string // of a link, absolute and without links
}

// is reports whether what is at another path now is the same. A link can be moved or be
// removed and made again, perhaps with the same number: what counts is where it leads.
func (k known) is(now known) bool {
	return os.SameFile(k.FileInfo, now.FileInfo) && k.target == now.target
}

// look returns what is at rel.
func (w *Dir) look(rel string) (known, error) {
	info, err := w.root.Lstat(rel)
	k := known{FileInfo: info}
	if err == nil && info.Mode().Type() == fs.ModeSymlink {
		k.target = withoutLinks(w.absolute(rel))
	}
	return k, err
}

// Guards looks through the whole workspace.
func (w *Dir) Guards(ctx context.Context) (*Guards, error) {
	found, err := w.scan(ctx, func(string) error { return nil })
	if err != nil {
		return nil, err
	}
	g := &Guards{dir: w, known: map[string]known{}, around: map[string]known{}, rebase: map[string][]string{}, named: w.namedByAll(found.repositories)}
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
			if path.Base(dir)[0] == '.' && !slices.Contains(g.Fixed, w.absolute(dir)) { // such as .vscode, whose name counts
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

// addCommon adds the git folder of a linked worktree, with its submodules and those of
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

// isKnown reports whether what is at rel was there before, perhaps in another
// place: a folder around it may have been renamed.
func (g *Guards) isKnown(rel string) bool {
	now, err := g.dir.look(rel)
	if err != nil {
		return true // there is nothing to remove
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

// Cleaned is what [Guards.Clean] has found, by paths relative to the workspace; a setting
// is the path of its file and its name.
type Cleaned struct {
	Removed []string // what the program had made
	Kept    []string // what somebody else may have made or changed
}

// Clean removes what is guarded, was not there before and was made by the program:
// files and folders by their names, and from new repositories the hooks and the settings
// that run programs. What else is new or has changed it leaves as it is. created reports
// whether the program has tried to create something of this name, in whichever folder. Clean
// is to be called when the program has exited.
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
	if g.common != nil { // first: what leads to a worktree there may stay if that is fine
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
		made := g.isMade(rel, created)
		if made {
			if err := g.removeAll(ctx, rel); err != nil {
				failed = append(failed, err)
				return
			}
		}
		note(made, []string{rel}, nil)
	}
	for _, rel := range slices.Concat(found.guarded, g.dir.existing(g.named)) {
		if !g.leadsToOurs(rel, found.repositories) {
			remove(rel)
		}
	}
	for _, rel := range found.repositories {
		steps := path.Join(rel, rebaseSteps)
		_ = g.unlock(steps) // disarmRebase fails if that does
		made := created(path.Base(steps))
		commands, err := g.dir.disarmRebase(steps, g.rebase[steps], made)
		note(made, commands, err)
		if !g.isKnown(rel) {
			for _, inner := range insideRepository(rel) {
				_ = g.unlock(inner) // disarm fails if that does
			}
			made := created(path.Base(rel)) || created("objects") || created("refs")
			settings, err := g.dir.disarm(rel, made)
			note(made, settings, err)
			if common := path.Join(rel, "commondir"); !g.leadsToOurs(common, found.repositories) {
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

// isMade reports whether it is certain that the program has made what is new at rel.
func (g *Guards) isMade(rel string, created func(name string) bool) bool {
	if was, ok := g.known[rel]; ok && was.target == "" {
		// The sandbox keeps programs from replacing a file, unless they replace the folder.
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

// leadsToOurs reports whether a file .git or commondir leads to a repository in the
// workspace, which is guarded itself, or to that of its linked worktree.
func (g *Guards) leadsToOurs(rel string, repositories []string) bool {
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
