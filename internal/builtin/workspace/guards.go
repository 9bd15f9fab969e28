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
// those, and Clean removes what it has added. Dependencies in node_modules are left
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
	g := &Guards{dir: w, known: map[string]known{}, rebase: map[string][]string{}, named: w.namedByAll(found.repositories)}
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
	if k, err := g.dir.look(rel); err == nil {
		g.known[rel] = k
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

// Clean removes what is guarded and was not there before: files and folders by
// their names, and from new repositories the hooks and the settings that run
// programs. It returns what it removed, relative to the workspace; a setting as the
// path of its file and its name. It is to be called when the program has exited.
func (g *Guards) Clean(ctx context.Context) (removed []string, err error) {
	found, err := g.dir.scan(ctx, g.unlock)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, rel := range found.closed {
		if !g.isKnown(rel) {
			failed = append(failed, fmt.Errorf("the folder %s cannot be read", g.dir.absolute(rel)))
		}
	}
	if g.common != nil { // first: what leads to a worktree there may stay if that is fine
		names, err := g.common.Clean(ctx)
		failed = append(failed, err)
		for _, name := range names {
			removed = append(removed, g.Common+"/"+name)
		}
	}
	remove := func(rel string) {
		if g.isKnown(rel) {
			return
		}
		name, err := g.takeAway(ctx, rel)
		if err != nil {
			failed = append(failed, err)
			return
		}
		removed = append(removed, name)
	}
	for _, rel := range slices.Concat(found.guarded, g.dir.existing(g.named)) {
		if !g.leadsToOurs(rel, found.repositories) {
			remove(rel)
		}
	}
	for _, rel := range found.repositories {
		steps := path.Join(rel, rebaseSteps)
		_ = g.unlock(steps) // disarmRebase fails if that does
		commands, err := g.dir.disarmRebase(steps, g.rebase[steps])
		removed, failed = append(removed, commands...), append(failed, err)
		if !g.isKnown(rel) {
			for _, inner := range insideRepository(rel) {
				_ = g.unlock(inner) // disarm fails if that does
			}
			settings, err := g.dir.disarm(rel)
			removed, failed = append(removed, settings...), append(failed, err)
			if common := path.Join(rel, "commondir"); !g.leadsToOurs(common, found.repositories) {
				remove(common)
			}
			continue
		}
		for _, inner := range insideRepository(rel) {
			remove(inner)
		}
	}
	slices.Sort(removed)
	return slices.Compact(removed), errors.Join(failed...)
}

// takeAway removes what is new. What replaced a guarded file is renamed instead: as
// the sandbox keeps programs from that, somebody outside has saved the file, after
// which it was open to the program too. It returns the path for people.
func (g *Guards) takeAway(ctx context.Context, rel string) (string, error) {
	if _, ok := g.known[rel]; !ok {
		return rel, g.removeAll(ctx, rel)
	}
	aside := rel + ".replaced"
	for n := 2; ; n++ { // what an earlier call kept stays
		if _, err := g.dir.root.Lstat(aside); err != nil {
			break
		}
		aside = fmt.Sprintf("%s.replaced.%d", rel, n)
	}
	return rel + " (it was replaced meanwhile; kept as " + aside + ")", g.dir.root.Rename(rel, aside)
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
