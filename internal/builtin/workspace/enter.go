package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/toolreg/toolreg/internal/text"
)

// errMoved means that a folder on the path was replaced by a link after the path
// was resolved. An os.Root would follow the link to another folder of the
// workspace.
var errMoved = errors.New("was replaced by a link while it was being used; try again")

// enter opens the folder at rel. No part of rel may be a link. If create is set,
// missing folders are created.
func (w *Dir) enter(rel string, create bool) (*os.Root, error) {
	root, err := w.Root()
	if err != nil {
		return nil, err
	}
	at, err := root.OpenRoot(".")
	for _, part := range split(rel) {
		if err != nil {
			return nil, text.Cause(err)
		}
		above := at
		at, err = step(above, part, create)
		above.Close()
	}
	return at, text.Cause(err)
}

// Enter opens the folder at rel, which [Dir.Param] returned. The caller closes
// it.
func (w *Dir) Enter(rel string) (*os.Root, error) { return w.enter(rel, false) }

// OpenStart opens the folder in which a program is to start. The program starts
// there even if the path is replaced later.
func (w *Dir) OpenStart(rel string) (*os.File, error) {
	folder, err := w.Enter(rel)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return folder.Open(".")
}

// step opens the folder with the given name in above.
func step(above *os.Root, name string, create bool) (*os.Root, error) {
	at, err := above.OpenRoot(name)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := above.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		at, err = above.OpenRoot(name)
	}
	if err != nil {
		if info, e := above.Lstat(name); e == nil && info.Mode().IsRegular() {
			err = syscall.ENOTDIR // package os returns its own error for this
		}
		return nil, err
	}
	opened, err := at.Stat(".")
	if err == nil {
		err = isAt(above, name, opened)
	}
	if err != nil {
		at.Close()
		return nil, err
	}
	return at, nil
}

// isAt returns an error unless the opened file is the entry with that name
// itself, rather than the target of a link.
func isAt(folder *os.Root, name string, opened fs.FileInfo) error {
	named, err := folder.Lstat(name)
	if err == nil && !os.SameFile(named, opened) {
		return errMoved
	}
	return err
}

// parent opens the folder that contains rel, and returns the name of rel in it.
func (w *Dir) parent(rel string) (*os.Root, string, error) {
	folder, err := w.enter(path.Dir(rel), false)
	return folder, path.Base(rel), err
}
