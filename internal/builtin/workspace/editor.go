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

	"github.com/toolreg/toolreg/internal/atomicfile"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Editor changes the files of a workspace. It is safe for concurrent use. Tools that change
// the same workspace share one, so that [Editor.Locked] holds between them.
type Editor struct {
	*Dir
	protected []string // absolute
	changing  changeLock
}

// NewEditor returns an editor of the workspace, without opening anything.
func NewEditor(opts Options) *Editor { return &Editor{Dir: New(opts), protected: opts.Protected} }

// Changeable resolves the path of a file to be written. It rejects toolreg's
// own files.
func (e *Editor) Changeable(tool, pointer, name string) (string, error) {
	return e.changeable(tool, pointer, name, text.Alike)
}

// Creatable is Changeable for a file that need not exist: an existing file whose name only looks
// the same is a different file.
func (e *Editor) Creatable(tool, pointer, name string) (string, error) {
	return e.changeable(tool, pointer, name, text.Composed)
}

func (e *Editor) changeable(tool, pointer, name string, form func(string) string) (string, error) {
	rel, err := e.param(tool, pointer, name, form)
	if err != nil {
		return "", err
	}
	if rel == "." || strings.HasSuffix(name, "/") {
		return "", registry.Invalid(tool, pointer, "%s is a folder; give the path of a file", text.Quote(name))
	}
	if err := e.Protect(rel); err != nil {
		if _, ok := errors.AsType[*refusal](err); ok {
			return "", fmt.Errorf("%w: %w", registry.ErrDenied, err)
		}
		return "", err
	}
	return rel, nil
}

// ChangedPaths is SubjectPaths for a call that changes the files. For a file that git runs or reads
// as configuration, it adds a path in .git/hooks.
func (e *Editor) ChangedPaths(names ...string) ([]string, error) {
	out, err := e.SubjectPaths(names...)
	for _, rel := range out {
		if hook := path.Join(".git", "hooks", path.Base(rel)); !slices.Contains(out, hook) &&
			e.user.Uses(filepath.Join(e.real, filepath.FromSlash(rel)), e.real) {
			out = append(out, hook)
		}
	}
	return out, err
}

// Protect returns an error if rel is one of toolreg's own files or inside one
// of its folders, by name, ignoring case, or by identity.
func (e *Editor) Protect(rel string) error {
	root, err := e.Root()
	if err != nil {
		return err
	}
	for _, own := range e.protected {
		if e.named(rel, own) || identical(root, rel, own) {
			return &refusal{rel, "belongs to toolreg; tools cannot change it"}
		}
	}
	return nil
}

// named compares by name, which also works for files that do not exist yet.
func (e *Editor) named(rel, own string) bool {
	for _, base := range []string{e.dir, e.real} {
		at := filepath.Join(base, filepath.FromSlash(rel))
		if below, err := filepath.Rel(text.Folded(own), text.Folded(at)); err == nil && filepath.IsLocal(below) {
			return true
		}
	}
	return false
}

func identical(root *os.Root, rel, own string) bool {
	want, err := os.Stat(own)
	if err != nil {
		return false
	}
	for at := rel; ; at = path.Dir(at) {
		if info, err := root.Stat(at); err == nil && os.SameFile(info, want) {
			return true
		}
		if at == "." {
			return false
		}
	}
}

// Locked runs do while no other call changes the workspace, in this or any other toolreg process,
// so that concurrent changes to a file are not lost.
func (e *Editor) Locked(ctx context.Context, do func() registry.Result) (registry.Result, error) {
	root, err := e.Root()
	if err != nil {
		return registry.Result{}, err
	}
	release, err := e.changing.acquire(ctx, root)
	if err != nil {
		return registry.Result{}, fmt.Errorf("waiting to change the workspace: %w", err)
	}
	defer release()
	return do(), nil
}

// MissingFolders returns the parent folders of rel that do not exist, the
// deepest first.
func (e *Editor) MissingFolders(rel string) []string {
	root, err := e.Root()
	if err != nil {
		return nil
	}
	var out []string
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if _, err := root.Lstat(dir); err != nil {
			out = append(out, dir)
		}
	}
	return out
}

// RemoveFolders removes those of the folders that are empty.
func (e *Editor) RemoveFolders(folders []string) {
	root, err := e.Root()
	if err != nil {
		return
	}
	for _, dir := range folders {
		_ = root.Remove(dir) // a folder that is not empty stays
	}
}

// WriteFile creates the file at rel, which [Dir.Param] returned, or replaces
// its content with data. It creates missing folders. The new content is on disk
// before it gets the name: readers see the old content or the new one, and a
// failure leaves the old one. mode is the permission bits; 0 keeps those of the
// old file. WriteFile refuses toolreg's own files, files without write
// permission and anything but regular files.
//
// The file gets a new inode: a hard link elsewhere keeps the old content.
func (e *Editor) WriteFile(rel string, data []byte, mode fs.FileMode) (err error) {
	created := e.MissingFolders(rel)
	defer func() {
		if err != nil {
			e.RemoveFolders(created)
		}
	}()
	parent, err := e.Parent(rel)
	if err != nil {
		return err
	}
	defer parent.Close()
	s, err := Stage(parent, path.Base(rel), data, mode)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Commit(); err != nil {
		return err
	}
	_ = atomicfile.SyncFolder(parent) // the content is written even if this fails
	return nil
}

// Parent opens the folder of a file that may be written, and creates it if
// needed. The caller closes it.
func (e *Editor) Parent(rel string) (*os.Root, error) {
	if err := e.Protect(rel); err != nil {
		return nil, err
	}
	if rel == "." {
		return nil, ErrIsDir
	}
	dir := path.Dir(rel)
	// All further steps name the file within its folder, so that they are not
	// redirected if the folder is replaced.
	parent, err := e.enter(dir, true)
	if err != nil {
		return nil, fmt.Errorf("creating folder %s: %w", text.Quote(dir), err)
	}
	atomicfile.Sweep(parent)
	return parent, nil
}

// Stage checks the existing file and writes the new content to a temporary file
// next to it, with the same owner and, if mode is 0, the same permission bits.
// The caller closes the result.
func Stage(parent *os.Root, base string, data []byte, mode fs.FileMode) (*atomicfile.File, error) {
	old, err := parent.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return nil, text.Cause(err)
	case old.IsDir():
		return nil, ErrIsDir
	case old.Mode()&fs.ModeSymlink != 0:
		return nil, errors.New("became a link while it was being written")
	case !old.Mode().IsRegular():
		return nil, ErrKind
	case old.Mode().Perm()&0o222 == 0:
		return nil, errors.New("is read-only; make it writable first")
	}
	s, err := atomicfile.Stage(parent, base, data, atomicfile.Options{Like: old})
	if err != nil || mode == 0 {
		return s, err
	}
	if err := s.Chmod(mode); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// RemoveFile removes the regular file at rel, which [Dir.Param] returned.
func (e *Editor) RemoveFile(rel string) error {
	if err := e.Protect(rel); err != nil {
		return err
	}
	folder, name, err := e.parent(rel)
	if err != nil {
		return err
	}
	defer folder.Close()
	info, err := folder.Lstat(name)
	switch {
	case err != nil:
		return text.Cause(err)
	case info.IsDir():
		return ErrIsDir
	case !info.Mode().IsRegular():
		return ErrKind
	}
	return text.Cause(folder.Remove(name))
}
