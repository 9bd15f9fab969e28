package workspace

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Changeable resolves the path of a file to be written. It rejects toolreg's
// own files.
func (w *Dir) Changeable(tool, pointer, name string) (string, error) {
	rel, err := w.Param(tool, pointer, name)
	if err != nil {
		return "", err
	}
	if rel == "." || strings.HasSuffix(name, "/") {
		return "", registry.Invalid(tool, pointer, "%s is a folder; give the path of a file", text.Quote(name))
	}
	if err := w.Protect(rel); err != nil {
		if _, ok := errors.AsType[*refusal](err); ok {
			return "", fmt.Errorf("%w: %w", registry.ErrDenied, err)
		}
		return "", err
	}
	return rel, nil
}

// Locked runs do while no other call changes the workspace, in this process or
// in any other toolreg process, so that concurrent changes of a file are not
// lost.
func (w *Dir) Locked(ctx context.Context, do func() registry.Result) (registry.Result, error) {
	root, err := w.Root()
	if err != nil {
		return registry.Result{}, err
	}
	release, err := w.changing.acquire(ctx, root)
	if err != nil {
		return registry.Result{}, fmt.Errorf("waiting to change the workspace: %w", err)
	}
	defer release()
	return do(), nil
}

// MissingFolders returns the parent folders of rel that do not exist, the
// deepest first.
func (w *Dir) MissingFolders(rel string) []string {
	root, err := w.Root()
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
func (w *Dir) RemoveFolders(folders []string) {
	root, err := w.Root()
	if err != nil {
		return
	}
	for _, dir := range folders {
		_ = root.Remove(dir) // a folder that is not empty stays
	}
}
