package guards

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/git"
	"github.com/toolreg/toolreg/internal/sandbox"
)

// Guards records the files and folders of the workspace that other programs use,
// as they were before a confined program ran. The sandbox keeps the program from
// changing them, and Clean removes those that it added. Files that another
// program may have created or changed meanwhile stay. node_modules is left out:
// other programs do not use its files this way, and there may be thousands.
type Guards struct {
	// ReadOnly are absolute paths of files and folders that must not be changed.
	ReadOnly []string
	// Brokered are the git folders, in which toolreg makes the program's changes.
	Brokered []sandbox.Brokered
	// Removable are the folders of linked worktrees, which the program may remove.
	Removable []string
	// Unrecorded is why the folder of the logs could not be written; nil if it could. Without
	// a log, nobody cleans if toolreg is killed.
	Unrecorded error
	record

	tree  *Tree
	log   *os.File  // nil means none is kept
	until time.Time // when an earlier program was last known to run; otherwise zero

	opening sync.Mutex
	opened  map[string]fs.FileMode // the modes that unlock has changed, by path
	others  []*Guards              // of Common and of Scope.Folders

	accepted map[string]string // settings of git that the program was allowed to write, by path
	before   Cleaned           // what was found of earlier programs
}

// record is the state before the program ran, as far as [Guards.Clean] needs it.
type record struct {
	Tree    string // its absolute path
	ID      string // of the tree itself
	OfGit   bool
	Start   time.Time
	Started time.Time // before the program, by the clock of file systems
	Beside  time.Time // the Started of another program that was running then; zero if there was none
	Lasting bool      // Scope.Lasting
	// Fixed are absolute paths of folders that must not be renamed.
	Fixed []string
	// Common is the absolute path of the git folder outside the workspace that a
	// linked worktree shares with other worktrees, or "". The program must be able to
	// write there.
	Common string

	Known   map[string]known // guarded files, folders and repositories, by path
	Named   []string         // paths in git's configuration and targets of guarded links; they need not exist
	Private []string         // Scope.Private, relative

	Around map[string]known    // the parent folders of Known
	Closed []known             // folders that could not be read
	Steps  map[string][]string // what runs commands in unfinished operations of git, by the path of the file
}

// known is a file or folder that existed before the program ran.
type known struct {
	ID string // its device and inode number
	// Born is when the file was created, because inode numbers are reused; "" if the file system
	// does not record it.
	Born   string `json:",omitempty"`
	Mode   fs.FileMode
	Target string // of a link, absolute, links resolved
}

// is reports whether now is the same file, perhaps at another path. For links the target
// decides, because a link can be moved, or removed and created again with the same
// inode number.
func (k known) is(now known) bool {
	return k.ID == now.ID && k.Born == now.Born && k.Target == now.Target
}

// lookup returns the file at rel, without following a link.
func (t *Tree) lookup(rel string) (known, error) {
	info, err := t.root.Lstat(rel)
	if err != nil {
		return known{}, err
	}
	k := known{ID: fileID(info), Born: born(t.absolute(rel)), Mode: info.Mode()}
	if info.Mode().Type() == fs.ModeSymlink {
		k.Target = git.ResolveLinks(t.absolute(rel))
	}
	return k, nil
}

// Scope describes what a program may do besides changing the tree.
type Scope struct {
	Folders []string // other folders that it may write, absolute
	Private []string // files and folders that it must not create, absolute
	Lasting bool     // the program runs as long as toolreg, as servers do

	workspace string // where the program runs; "" means in the tree
}

// Guards scans the whole tree and the folders of the scope, after cleaning it if an earlier program was interrupted.
func (t *Tree) Guards(ctx context.Context, scope Scope) (*Guards, error) {
	if err := t.open(); err != nil {
		return nil, err
	}
	before, beside, err := t.cleanEarlier(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	found, err := t.scan(ctx, func(string) error { return nil })
	if err != nil {
		return nil, err
	}
	self, err := t.lookup(".")
	if err != nil {
		return nil, err
	}
	g := &Guards{
		tree:     t,
		before:   before,
		opened:   map[string]fs.FileMode{},
		accepted: map[string]string{},
		record: record{
			Tree:    t.path,
			ID:      self.ID,
			OfGit:   t.ofGit,
			Start:   start,
			Beside:  beside,
			Lasting: scope.Lasting,
			Known:   map[string]known{},
			Around:  map[string]known{},
			Steps:   map[string][]string{},
			Named:   t.allNamedPaths(found.repositories),
		},
	}
	for _, path := range scope.Private {
		g.Private = t.appendInside(g.Private, path)
	}
	for _, rel := range found.guarded {
		if k, err := t.lookup(rel); err == nil && k.Target != "" {
			g.Named = t.appendChain(g.Named, t.absolute(rel))
		}
	}
	for _, rel := range slices.Concat(found.shortcuts, t.named(g.Private)) { // what is private is hidden
		g.addPath(rel)
	}
	for _, rel := range slices.Concat(found.guarded, found.closed, t.named(g.Named)) {
		g.addPath(rel)
		if slices.Contains(found.closed, rel) {
			g.Closed = append(g.Closed, g.Known[rel])
		}
		g.ReadOnly = append(g.ReadOnly, t.absolute(rel))
		for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
			if path.Base(dir)[0] == '.' && !slices.Contains(g.Fixed, t.absolute(dir)) {
				// Its name may make its files guarded, as that of .vscode does.
				g.Fixed = append(g.Fixed, t.absolute(dir))
			}
		}
	}
	for _, rel := range found.repositories {
		g.addPath(rel)
		g.Fixed = append(g.Fixed, t.absolute(rel))
		for _, steps := range unfinished(rel) {
			g.Steps[steps] = t.commandsOf(steps)
		}
		for _, inner := range t.existing(insideRepository(rel)) {
			g.addPath(inner)
			g.ReadOnly = append(g.ReadOnly, t.absolute(inner))
		}
	}
	g.broker(found.repositories, cmp.Or(scope.workspace, t.real))
	if err := g.addHardLinks(ctx); err != nil {
		return nil, err
	}
	if err := g.addOthers(ctx, scope); err != nil || t.logs == "" {
		return g, err
	}
	g.Started = clock()
	if g.Unrecorded = g.startLog(); g.Unrecorded != nil {
		_ = g.mark() // if it fails, nothing can be written there
	}
	return g, nil
}

// Protect adds what the guards have found to the profile of the program, and has its names collected.
func (g *Guards) Protect(p *sandbox.Profile) {
	if g.Common != "" {
		p.Write = append(p.Write, g.Common)
	}
	p.ReadOnly, p.Fixed = append(p.ReadOnly, g.ReadOnly...), append(p.Fixed, g.Fixed...)
	p.Brokered, p.Removable = g.Brokered, g.Removable
	p.Created = &sandbox.Names{Log: g.Log()}
}

// Log returns the file to which the names that the program uses are to be appended, as
// sandbox.Names does; nil if there is none. Clean and Forget close it.
func (g *Guards) Log() *os.File { return g.log }

// Forget is called instead of Clean if the program was not started.
func (g *Guards) Forget() { g.endLog() }

func (g *Guards) addPath(rel string) {
	k, err := g.tree.lookup(rel)
	around, failed := g.tree.lookup(path.Dir(rel))
	if errors.Join(err, failed) == nil {
		g.Known[rel], g.Around[rel] = k, around
	}
}

// addHardLinks adds the other names of the read-only files, through which they could be changed.
// Such names are rare, and so is the search for them.
func (g *Guards) addHardLinks(ctx context.Context) error {
	wanted, t := map[string]bool{}, g.tree
	for _, path := range g.ReadOnly {
		_ = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return nil // the program cannot read it either
			}
			if info, err := e.Info(); err == nil && linkCount(info) > 1 {
				wanted[fileID(info)] = true
			}
			return nil
		})
	}
	if len(wanted) == 0 {
		return nil
	}
	var mu sync.Mutex
	_, err := t.dir.Walk(ctx, workspace.WalkOptions{Start: ".", Each: func(_ int, e *workspace.Entry) {
		if info, err := os.Lstat(t.absolute(e.Path)); err == nil && wanted[fileID(info)] {
			mu.Lock()
			defer mu.Unlock()
			g.ReadOnly = append(g.ReadOnly, t.absolute(e.Path))
		}
	}})
	return err
}

// addOthers adds the git folder of a linked worktree, with its submodules and its other
// worktrees, and the folders of the scope.
func (g *Guards) addOthers(ctx context.Context, scope Scope) error {
	folder, common := git.LinkedWorktree(g.tree.real)
	if common != "" {
		g.Common = common
		g.ReadOnly = append(g.ReadOnly, filepath.Join(folder, "gitdir"))
		g.tree.other(common).ofGit = true
		scope.Folders = append([]string{common}, scope.Folders...)
	}
	for _, path := range scope.Folders {
		if info, err := os.Stat(path); err != nil || !info.IsDir() || g.tree.contains(path) ||
			slices.ContainsFunc(g.others, func(other *Guards) bool { return other.tree.contains(path) }) {
			continue
		}
		other, err := g.tree.other(path).Guards(ctx, Scope{Private: scope.Private, workspace: g.tree.real})
		if err != nil {
			return err
		}
		g.others = append(g.others, other)
		g.Fixed, g.ReadOnly, g.Brokered = append(g.Fixed, other.Fixed...), append(g.ReadOnly, other.ReadOnly...),
			append(g.Brokered, other.Brokered...)
		g.Removable = append(g.Removable, other.Removable...)
	}
	return nil
}

// isKnown reports whether the file at rel existed before, perhaps at another
// path: a parent folder may have been renamed.
func (g *Guards) isKnown(rel string) bool {
	now, err := g.tree.lookup(rel)
	if err != nil {
		return true // nothing to remove
	}
	if was, ok := g.Known[rel]; ok && was.is(now) {
		return true
	}
	for _, was := range g.Known {
		if was.is(now) {
			return true
		}
	}
	return false
}

// mustStay reports whether the file at rel existed before and must not be removed. Another program
// that was running then may have created it, and ended while this program had moved it away.
func (g *Guards) mustStay(rel string, created created) bool {
	if _, err := g.tree.lookup(rel); err != nil {
		return true // nothing to remove
	}
	return g.isKnown(rel) &&
		(g.Beside.IsZero() || isBornBefore(g.tree.absolute(rel), g.Beside.Add(-clockTick)) || !g.isMoved(rel, created))
}

// created reports whether the program has used a name in a folder (see [fileID]) to create, write,
// rename or link a file.
type created func(folder, name string) bool

// isMoved reports whether the program has moved a folder with the file at rel.
func (g *Guards) isMoved(rel string, created created) bool {
	for at := path.Dir(rel); at != "."; at = path.Dir(at) {
		if folder, err := g.tree.lookup(path.Dir(at)); err == nil && created(folder.ID, sandbox.Renamed+path.Base(at)) {
			return true
		}
	}
	return false
}

// used reports whether the program has used the name of rel in its folder.
func (g *Guards) used(rel string, created created) bool {
	folder, err := g.tree.lookup(path.Dir(rel))
	return err == nil && created(folder.ID, path.Base(rel))
}

// Cleaned is the result of [Guards.Clean]. Paths are relative to the workspace. A git
// setting is given as the path of its file and its name.
type Cleaned struct {
	Removed []string // created by the program
	Kept    []string // possibly created or changed by another program
}

// below returns the result with absolute paths.
func (c Cleaned) below(tree string) Cleaned {
	for _, names := range [][]string{c.Removed, c.Kept} {
		for i, name := range names {
			if !filepath.IsAbs(name) {
				names[i] = filepath.Join(tree, name)
			}
		}
	}
	return c
}

func (c *Cleaned) add(more Cleaned) {
	c.Removed, c.Kept = append(c.Removed, more.Removed...), append(c.Kept, more.Kept...)
}

// Clean removes the guarded files and folders that did not exist before and were created by
// the program. From new repositories it removes only the hooks and the settings that run
// programs. Other new or changed files stay. created is as in sandbox.Names. Call Clean after
// the program has exited.
func (g *Guards) Clean(ctx context.Context, created created) (Cleaned, error) {
	defer g.endLog()
	defer g.lock(created)
	out := g.before
	found, err := g.tree.scan(ctx, g.unlock)
	if err != nil {
		return out, err
	}
	var failed []error
	for _, rel := range found.closed {
		if !g.isKnown(rel) {
			failed = append(failed, fmt.Errorf("the folder %s cannot be read", g.tree.absolute(rel)))
		}
	}
	if err := g.noteRun(ctx); err != nil && g.mark() != nil && g.Unrecorded == nil {
		failed = append(failed, fmt.Errorf("recording that a sandboxed program ran: %w", err))
		g.keepLog() // the next call tries it again
	}
	for _, other := range g.others { // first, because files that refer to a worktree in Common may stay if it is clean
		cleaned, err := other.Clean(ctx, created)
		failed = append(failed, err)
		out.add(cleaned.below(other.tree.path))
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
		if g.mustStay(rel, created) {
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
	for _, rel := range slices.Concat(found.shortcuts, found.guarded, g.tree.named(g.Named), g.tree.named(g.Private)) {
		if !g.refersInside(rel, found.repositories) && !g.isCheckedOut(rel) {
			remove(rel)
		}
	}
	for _, rel := range found.repositories {
		if g.isLostWorktree(rel, created) {
			note(true, []string{rel + " (its worktree was in a folder that is deleted by now)"}, g.removeAll(ctx, rel))
			continue
		}
		for _, steps := range unfinished(rel) {
			_ = g.unlock(steps) // if this fails, so does disarmSteps
			made := g.used(steps, created) && !g.isChangedSince(steps)
			commands, err := g.tree.disarmSteps(steps, g.Steps[steps], made)
			note(made, commands, err)
		}
		if !g.mustStay(rel, created) {
			for _, inner := range insideRepository(rel) {
				_ = g.unlock(inner) // if this fails, so does disarm
			}
			made := g.isCreatedByProgram(rel, created) ||
				(g.used(rel, created) || g.used(path.Join(rel, "objects"), created) ||
					g.used(path.Join(rel, "refs"), created)) && !g.isChangedSince(path.Join(rel, "config"))
			settings, err := g.tree.disarm(rel, made)
			note(made, settings, err)
			if common := path.Join(rel, "commondir"); !g.refersInside(common, found.repositories) {
				remove(common)
			}
			continue
		}
		for _, inner := range insideRepository(rel) {
			if text, ok := g.accepted[inner]; !ok || string(git.ReadFile(g.tree.absolute(inner))) != text {
				remove(inner)
			}
		}
	}
	for _, names := range []*[]string{&out.Removed, &out.Kept} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return out, errors.Join(failed...)
}

// isLostWorktree reports whether the program has added a linked worktree in a folder that no longer
// exists, such as in its own /tmp.
func (g *Guards) isLostWorktree(rel string, created created) bool {
	if path.Base(path.Dir(rel)) != "worktrees" || g.mustStay(rel, created) || !g.isCreatedByProgram(rel, created) {
		return false
	}
	_, err := os.Lstat(g.tree.worktreeOf(rel))
	return errors.Is(err, fs.ErrNotExist)
}

// clockTick is longer than the time between two ticks of the clock of file systems.
const clockTick = 10 * time.Millisecond

// isChangedSince reports whether a file was changed after the program was last known to run, so
// that the change is not the program's.
func (g *Guards) isChangedSince(rel string) bool {
	return !g.until.IsZero() && isChangedAfter(g.tree.absolute(rel), g.until)
}

// isCreatedByProgram reports whether it is certain that the program created the new file at rel.
func (g *Guards) isCreatedByProgram(rel string, created created) bool {
	if was, ok := g.Known[rel]; ok && was.Target == "" {
		// The sandbox keeps programs from replacing a file unless they replace its folder.
		if now, err := g.tree.lookup(path.Dir(rel)); err == nil && g.Around[rel].is(now) {
			return false
		}
	}
	if g.isChangedSince(rel) {
		return false
	}
	for at := rel; at != "."; at = path.Dir(at) {
		if (at == rel || path.Base(at)[0] == '.' && !slices.Contains(g.Fixed, g.tree.absolute(at))) &&
			g.used(at, created) {
			return true
		}
	}
	// An older file came with an enclosing folder.
	return isBornBefore(g.tree.absolute(rel), g.Start.Add(-clockTick)) && g.isMoved(rel, created)
}

// refersInside reports whether rel is a file .git or commondir that refers to a
// repository in the workspace, which is guarded itself, or to the repository of its
// linked worktree.
func (g *Guards) refersInside(rel string, repositories []string) bool {
	name := path.Base(rel)
	info, err := g.tree.root.Lstat(rel)
	if name != ".git" && name != "commondir" || err != nil || !info.Mode().IsRegular() {
		return false
	}
	text, _ := strings.CutPrefix(strings.TrimSpace(string(git.ReadFile(g.tree.absolute(rel)))), "gitdir:")
	target := git.ResolveLinks(git.From(filepath.Dir(g.tree.absolute(rel)), strings.TrimSpace(text)))
	if g.Common != "" && (target == g.Common || filepath.Dir(target) == filepath.Join(g.Common, "worktrees")) {
		return true
	}
	return slices.ContainsFunc(repositories,
		func(repository string) bool { return g.tree.absolute(repository) == target })
}

// isCheckedOut reports whether rel equals what another worktree of the same repository had in the
// same place before the program ran, because "git worktree add" has written it. The other
// worktree's folder may contain more.
func (g *Guards) isCheckedOut(rel string) bool {
	isTop := func(dir string) bool {
		_, err := g.tree.root.Lstat(path.Join(dir, ".git"))
		return err == nil
	}
	common := func(top string) string { // the git folder that worktrees share
		folders := git.Folders(g.tree.absolute(top))
		return git.ResolveLinks(folders[len(folders)-1])
	}
	top := path.Dir(rel)
	for !isTop(top) {
		if top == "." {
			return false
		}
		top = path.Dir(top)
	}
	below := relative(top, rel)
	for known, was := range g.Known {
		other, ok := strings.CutSuffix("./"+known, "/"+below)
		other = path.Clean(other)
		if _, before := g.Known[path.Join(other, ".git")]; !ok || !before || common(other) != common(top) {
			continue
		}
		if now, err := g.tree.lookup(known); err == nil && was.is(now) && g.tree.isPart(rel, known) {
			return true
		}
	}
	return false
}

// isPart reports whether the files at two paths have the same content and mode. If they are
// folders, the other may contain more files than rel.
func (t *Tree) isPart(rel, of string) bool {
	info, err := t.root.Lstat(rel)
	other, failed := t.root.Lstat(of)
	if errors.Join(err, failed) != nil || info.Mode().Type() != other.Mode().Type() {
		return false
	}
	if info.IsDir() {
		entries, err := fs.ReadDir(t.root.FS(), rel)
		return err == nil && !slices.ContainsFunc(entries,
			func(e fs.DirEntry) bool { return !t.isPart(path.Join(rel, e.Name()), path.Join(of, e.Name())) })
	}
	if !info.Mode().IsRegular() || info.Mode() != other.Mode() || info.Size() != other.Size() {
		return false
	}
	a, err := t.root.ReadFile(rel)
	b, failed := t.root.ReadFile(of)
	return errors.Join(err, failed) == nil && bytes.Equal(a, b)
}
