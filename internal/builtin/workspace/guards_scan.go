package workspace

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// guarded is the result of a scan. Paths are relative to the workspace.
type guarded struct {
	mu           sync.Mutex
	guarded      []string
	repositories []string // folders that git treats as a repository
	heads        []string // folders with a file HEAD
	closed       []string // folders that could not be read

	unlock func(rel string) error
}

// scan scans the workspace. If a folder cannot be read because of its permissions, scan
// calls unlock and tries again.
func (w *Dir) scan(ctx context.Context, unlock func(rel string) error) (*guarded, error) {
	s := &guarded{unlock: unlock}
	if err := w.scanFolder(ctx, s, "."); err != nil {
		return nil, err
	}
	for _, rel := range slices.Clone(s.repositories) {
		if !w.canRead(rel) {
			if err := s.unlock(rel); err != nil {
				return nil, err
			}
		}
		for _, inner := range []string{"modules", "worktrees"} { // in .git, which scanFolder does not enter
			if info, err := w.root.Lstat(path.Join(rel, inner)); err == nil && info.IsDir() {
				if err := w.scanFolder(ctx, s, path.Join(rel, inner)); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, rel := range s.heads {
		if _, is := w.inRepository(path.Join(rel, "HEAD"), nil); is && !slices.Contains(s.repositories, rel) {
			s.repositories = append(s.repositories, rel)
		}
	}
	return s, nil
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

func (w *Dir) scanFolder(ctx context.Context, s *guarded, start string) error {
	note := func(list *[]string, rel string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		*list = append(*list, rel)
	}
	_, err := w.Walk(ctx, WalkOptions{Start: start,
		Enter: func(e *Entry) bool {
			switch {
			case e.Name == "node_modules" || e.Name == "objects" && w.ofGit:
			case isGit(e.Name):
				note(&s.repositories, strings.Clone(e.Path))
			case mayBeGuarded(e) && Guarded(e.Path) && start == ".":
				note(&s.guarded, strings.Clone(e.Path))
			default:
				return true
			}
			return false
		},
		Match: func(e *Entry) bool {
			if e.Name == "HEAD" {
				note(&s.heads, path.Dir(e.Path))
			} else if mayBeGuarded(e) && start == "." && (Guarded(e.Path) || e.Kind == fs.ModeSymlink && leadsToGuarded(e.Path)) {
				note(&s.guarded, strings.Clone(e.Path))
			}
			return false
		},
		Each: func(int, *Entry) {},
		Failed: func(rel string, err error) (again bool) {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
				return false // it was removed or replaced meanwhile
			}
			if errors.Is(err, fs.ErrPermission) && s.unlock(rel) == nil && w.canRead(rel) {
				return true
			}
			note(&s.closed, strings.Clone(rel))
			return false
		},
	})
	return err
}

func (w *Dir) canRead(rel string) bool {
	f, err := OpenFolder(w.root, rel)
	if err == nil {
		_ = f.Close()
	}
	return err == nil
}

func isGit(name string) bool { return len(name) >= 4 && plainName(strings.ToLower(name)) == ".git" }

// mayBeGuarded is a quick test before [Guarded]: almost all guarded paths have
// a component that starts with a dot.
func mayBeGuarded(e *Entry) bool {
	if e.Path[0] == '.' || strings.Contains(e.Path, "/.") {
		return true
	}
	for i := range len(e.Name) {
		if e.Name[i] >= 0x80 {
			return true
		}
	}
	switch lower := strings.ToLower(e.Name); {
	case strings.HasPrefix(lower, "lefthook"), strings.HasPrefix(lower, "opencode"), strings.HasPrefix(lower, "mise."), strings.HasPrefix(lower, "mcp.json"),
		strings.HasPrefix(lower, "toolreg.lock"), strings.HasPrefix(lower, "config.fish"), strings.HasPrefix(lower, "launch"), strings.Contains(lower, ".code-workspace"):
		return true
	}
	return false
}

// existing returns those of the paths that exist.
func (w *Dir) existing(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(rel string) bool {
		_, err := w.root.Lstat(rel)
		return err != nil
	})
}

func (w *Dir) absolute(rel string) string { return filepath.Join(w.real, filepath.FromSlash(rel)) }

// removeAll removes rel and everything below it, even if the permissions of a folder
// prevent it.
func (g *Guards) removeAll(ctx context.Context, rel string) error {
	err := g.dir.root.RemoveAll(rel)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err := g.unlock(rel); err != nil {
		return err
	}
	if info, err := g.dir.root.Lstat(rel); err == nil && info.IsDir() {
		_, _ = g.dir.Walk(ctx, WalkOptions{Start: rel, Enter: func(e *Entry) bool { return g.unlock(e.Path) == nil }, Match: func(*Entry) bool { return false }})
	}
	return g.dir.root.RemoveAll(rel)
}

// unlock gives the user, who owns the program's files, access to rel and to its parent
// folder. Folders that were already unreadable before the program ran stay unchanged.
func (g *Guards) unlock(rel string) error {
	for _, at := range []string{path.Dir(rel), rel} {
		now, err := g.dir.look(at)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(g.closed, now.is) {
			continue
		}
		access := fs.FileMode(0o600)
		if now.IsDir() {
			access = 0o700
		}
		if now.Mode().Type()&^fs.ModeDir == 0 && now.Mode()&access != access {
			if err := g.dir.root.Chmod(at, now.Mode().Perm()|access); err != nil {
				return err
			}
		}
	}
	return nil
}
