package guards

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/git"
)

// guarded is the result of a scan. Paths are relative to the workspace.
type guarded struct {
	mu           sync.Mutex
	guarded      []string
	repositories []string // folders that git treats as a repository
	heads        []string // folders with a file HEAD
	links        []string // symbolic links
	shortcuts    []string // links through which programs reach files under other names
	closed       []string // folders that could not be read

	unlock func(rel string) error
}

// count returns how much was found that other programs use.
func (s *guarded) count() int { return len(s.guarded) + len(s.repositories) + len(s.heads) }

// scan scans the workspace. If a folder cannot be read because of its permissions, scan
// calls unlock and tries again.
func (t *Tree) scan(ctx context.Context, unlock func(rel string) error) (*guarded, error) {
	s := &guarded{unlock: unlock}
	if err := t.scanFolder(ctx, s, ".", true); err != nil {
		return nil, err
	}
	if err := t.followShortcuts(ctx, s); err != nil {
		return nil, err
	}
	for _, rel := range slices.Clone(s.repositories) { // each is a .git, which scanFolder does not enter
		if !t.canRead(rel) {
			if err := s.unlock(rel); err != nil {
				return nil, err
			}
		}
		if err := t.scanFolder(ctx, s, rel, false); err != nil {
			return nil, err
		}
	}
	for _, rel := range s.heads {
		if t.isRepository(rel) && !slices.Contains(s.repositories, rel) {
			s.repositories = append(s.repositories, rel)
		}
	}
	for _, rel := range s.links {
		if t.misleadsGit(rel, s.repositories) {
			s.shortcuts = append(s.shortcuts, rel)
		}
	}
	return s, nil
}

// followShortcuts scans the folders in git's folders and in node_modules to which links lead,
// because through these links other programs use them like any other folder.
func (t *Tree) followShortcuts(ctx context.Context, s *guarded) error {
	seen := map[string]bool{}
	for i := 0; i < len(s.links); i++ { // a scan can find further links
		link := s.links[i]
		if path.Base(link) == workspace.Packages {
			continue
		}
		if info, err := os.Stat(t.absolute(link)); err != nil || !info.IsDir() {
			continue
		}
		target, _ := filepath.Rel(t.real, git.ResolveLinks(t.absolute(link)))
		if !filepath.IsLocal(target) {
			continue
		}
		parts := strings.Split(target, "/")
		if slices.ContainsFunc(parts, workspace.IsGit) {
			s.shortcuts = append(s.shortcuts, link)
			continue
		}
		if !slices.Contains(parts, workspace.Packages) {
			continue
		}
		if !seen[target] {
			before := s.count()
			if err := t.scanFolder(ctx, s, target, true); err != nil {
				return err
			}
			seen[target] = s.count() > before
		}
		if seen[target] {
			s.shortcuts = append(s.shortcuts, link)
		}
	}
	return nil
}

// misleadsGit reports whether a link is in a repository and would make git write to the file
// that it leads to, or read it as its own. git itself creates at most links in HEAD to refs.
func (t *Tree) misleadsGit(link string, repositories []string) bool {
	for _, repository := range repositories {
		below, ok := strings.CutPrefix(link, strings.TrimPrefix(repository+"/", "./"))
		if !ok || !workspace.IsGit(path.Base(repository)) && !t.ofGit && !ofRepository(below) {
			continue
		}
		target, _ := filepath.Rel(t.absolute(repository), git.ResolveLinks(t.absolute(link)))
		return path.Base(below) != "HEAD" || strings.Contains("/"+below, "/logs/") ||
			!strings.HasPrefix(target, "refs/")
	}
	return false
}

// ofRepository reports whether a path in a bare repository, whose folder may contain other
// files, belongs to the repository.
func ofRepository(below string) bool {
	first, _, isFolder := strings.Cut(below, "/")
	if isFolder {
		return slices.Contains([]string{"logs", "refs", "info", "hooks", "modules",
			"worktrees", "rebase-merge", "rebase-apply", "sequencer"}, first)
	}
	return strings.ToUpper(first) == first || slices.Contains([]string{"config", "index", "logs",
		"refs", "objects", "info", "hooks", "packed-refs", "shallow", "modules", "worktrees"}, first)
}

// isRepository reports whether git treats a folder with a file HEAD as a repository.
func (t *Tree) isRepository(rel string) bool {
	return len(t.existing([]string{path.Join(rel, "objects"), path.Join(rel, "refs")})) == 2 ||
		len(t.existing([]string{path.Join(rel, "commondir")})) == 1
}

// insideRepository returns the paths in a repository from which git runs
// programs or reads settings. A file commondir would redirect git to another
// repository.
func insideRepository(dir string) []string {
	out := []string{"hooks", "config", "config.worktree", "commondir"}
	for i := range out {
		out[i] = path.Join(dir, out[i])
	}
	return out
}

// scanFolder scans a folder, except folders named .git or node_modules in it. names is false in a
// git folder, where names have other meanings; its own objects are left out, but not other folders
// of that name, which may belong to submodules and worktrees.
func (t *Tree) scanFolder(ctx context.Context, s *guarded, start string, names bool) error {
	note := func(list *[]string, rel string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		*list = append(*list, rel)
	}
	_, err := t.dir.Walk(ctx, workspace.WalkOptions{Start: start, Special: true,
		Enter: func(e *workspace.Entry) bool {
			switch {
			case names && e.Name == workspace.Packages ||
				(t.ofGit || !names) && path.Dir(e.Path) == path.Join(start, "objects"):
			case workspace.IsGit(e.Name):
				note(&s.repositories, strings.Clone(e.Path))
			case names && workspace.MayBeGuarded(e) && workspace.Guarded(e.Path):
				note(&s.guarded, strings.Clone(e.Path))
			default:
				return true
			}
			return false
		},
		Match: func(e *workspace.Entry) bool {
			if e.Kind == fs.ModeSymlink {
				note(&s.links, strings.Clone(e.Path))
			}
			if e.Name == "HEAD" {
				note(&s.heads, path.Dir(e.Path))
			} else if names && workspace.MayBeGuarded(e) && (workspace.Guarded(e.Path) ||
				e.Kind == fs.ModeSymlink && workspace.LeadsToGuarded(e.Path) ||
				strings.HasSuffix("/"+e.Path, "/.jj/repo")) {
				note(&s.guarded, strings.Clone(e.Path))
			}
			return false
		},
		Each: func(int, *workspace.Entry) {},
		Failed: func(rel string, err error) (again bool) {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
				return false // it was removed or replaced meanwhile
			}
			if errors.Is(err, fs.ErrPermission) && s.unlock(rel) == nil && t.canRead(rel) {
				return true
			}
			note(&s.closed, strings.Clone(rel))
			return false
		},
	})
	return err
}

func (t *Tree) canRead(rel string) bool {
	f, err := workspace.OpenFolder(t.root, rel)
	if err == nil {
		_ = f.Close()
	}
	return err == nil
}

// named returns those of the paths that exist, or the first link on the way to each.
func (t *Tree) named(paths []string) []string {
	var out []string
	for _, rel := range paths {
		at := ""
		for part := range strings.SplitSeq(rel, "/") {
			at = path.Join(at, part)
			if info, err := t.root.Lstat(at); err == nil && (at == rel || info.Mode().Type() == fs.ModeSymlink) {
				out = append(out, at)
				break
			}
		}
	}
	return out
}

func (t *Tree) existing(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(rel string) bool {
		_, err := t.root.Lstat(rel)
		return err != nil
	})
}

// contains reports whether an absolute path, with links resolved, is in the tree.
func (t *Tree) contains(path string) bool { return isWithin(git.ResolveLinks(path), t.real) }

func isWithin(path, folder string) bool {
	rel, _ := filepath.Rel(folder, path) // with an error it is not local
	return filepath.IsLocal(rel)
}

func (t *Tree) absolute(rel string) string { return filepath.Join(t.real, filepath.FromSlash(rel)) }

// removeAll removes rel and everything below it, even if the permissions of a folder
// prevent it.
func (g *Guards) removeAll(ctx context.Context, rel string) error {
	err := g.tree.root.RemoveAll(rel)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err := g.unlock(rel); err != nil {
		return err
	}
	// If rel is not a folder, this does nothing.
	_, _ = g.tree.dir.Walk(ctx, workspace.WalkOptions{Start: rel,
		Enter: func(e *workspace.Entry) bool { return g.unlock(e.Path) == nil },
		Match: func(*workspace.Entry) bool { return false }})
	return g.tree.root.RemoveAll(rel)
}

// unlock gives the user, who owns the program's files, access to rel and to its parent
// folder, until lock. Folders that were already unreadable before the program ran stay unchanged.
func (g *Guards) unlock(rel string) error {
	for _, at := range []string{path.Dir(rel), rel} {
		now, err := g.tree.lookup(at)
		if err != nil {
			return err
		}
		access := fs.FileMode(0o600)
		if now.Mode.IsDir() {
			access = 0o700
		}
		if now.Mode&access != access && !slices.ContainsFunc(g.Closed, now.is) { // a link has all permissions
			if err := g.tree.root.Chmod(at, now.Mode.Perm()|access); err != nil {
				return err
			}
			g.opening.Lock()
			g.opened[at] = now.Mode.Perm()
			g.opening.Unlock()
		}
	}
	return nil
}

// lock undoes what unlock has changed, except for what the program has created: the user may
// have closed a folder meanwhile.
func (g *Guards) lock(created created) {
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(g.opened))) { // inner folders first
		if !g.used(at, created) {
			_ = g.tree.root.Chmod(at, g.opened[at]) // it may be removed by now
		}
	}
	clear(g.opened)
}

// Tree is a folder that sandboxed programs may write, such as the workspace. It is opened
// on first use and is safe for concurrent use.
type Tree struct {
	dir   *workspace.Dir
	user  git.User
	path  string // absolute
	logs  string
	ofGit bool // it is the git folder that a linked worktree shares with others

	once sync.Once
	root *os.Root
	real string // its path with links resolved
	err  error

	sharing sync.Mutex
	others  map[string]*Tree // by path: the git folder that this linked worktree shares with others, other folders
}

// New returns the tree at an absolute path without opening anything.
// logs is a folder of toolreg for what must survive if toolreg is killed; "" means none.
func New(path string, user git.User, logs string) *Tree {
	return &Tree{dir: workspace.New(workspace.Options{Dir: path}), user: user, path: path, logs: logs,
		others: map[string]*Tree{}}
}

func (t *Tree) open() error {
	t.once.Do(func() {
		if t.root, t.err = t.dir.Root(); t.err == nil {
			t.real, t.err = t.dir.Path()
		}
	})
	return t.err
}

// other returns another tree that the programs of this tree may write. It is closed with this
// tree.
func (t *Tree) other(path string) *Tree {
	t.sharing.Lock()
	defer t.sharing.Unlock()
	if t.others[path] == nil {
		t.others[path] = New(path, t.user, "")
	}
	return t.others[path]
}

// Close releases the tree; nothing can be opened after that.
func (t *Tree) Close() error {
	t.sharing.Lock()
	defer t.sharing.Unlock()
	for _, other := range t.others {
		_ = other.Close() // only read
	}
	return t.dir.Close()
}
