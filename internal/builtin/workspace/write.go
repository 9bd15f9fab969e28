package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/toolreg/toolreg/internal/atomicfile"
	"github.com/toolreg/toolreg/internal/text"
)

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
		return nil, Cause(err)
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
		return Cause(err)
	case info.IsDir():
		return ErrIsDir
	case !info.Mode().IsRegular():
		return ErrKind
	}
	return Cause(folder.Remove(name))
}
