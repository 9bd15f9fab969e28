package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

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

// NewEditor returns the workspace with what changes it, without opening anything.
func NewEditor(opts Options) *Editor { return &Editor{Dir: New(opts), protected: opts.Protected} }

// Changeable resolves the path of a file to be written. It rejects toolreg's
// own files.
func (e *Editor) Changeable(tool, pointer, name string) (string, error) {
	return e.changeable(tool, pointer, name, text.Alike)
}

// Creatable is Changeable for a file that need not exist: a file whose name only
// looks the same is another one.
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

// ChangedPaths is SubjectPaths for a call that changes the files. One that git reads as
// configuration or runs has a path in .git/hooks too.
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

// Locked runs do while no other call changes the workspace, in this process or
// in any other toolreg process, so that concurrent changes of a file are not
// lost.
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
