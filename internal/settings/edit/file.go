package edit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolreg/toolreg/internal/atomicfile"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
)

// File replaces a settings file with the result of change, atomically: readers
// see the old file or the new one. old is nil for a missing file, which is
// created with its folder, for this user only. File follows a link and keeps
// the mode. It writes nothing if change fails or changes nothing, or if another
// program has changed the file in the meantime. The caller must serialize
// concurrent runs of this program.
//
// If root is not "", it is a folder that contains the file, and File writes nothing
// outside it, even through links, because links in a project are not the user's own.
func File(root, path string, change func(old []byte) ([]byte, error)) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	old, info, err := readForEdit(path)
	if err != nil {
		return err
	}
	out, err := change(old)
	if err != nil || old != nil && bytes.Equal(old, out) {
		return err
	}
	dir, name := filepath.Split(path)
	folder, err := openFolder(root, filepath.Clean(dir), 0o700)
	if err != nil {
		return err
	}
	defer folder.Close()
	staged, err := atomicfile.Stage(folder, name, out, atomicfile.Options{Like: info, Mode: 0o600})
	if err == nil {
		defer staged.Close()
		if now, _, err := readForEdit(path); err != nil || !bytes.Equal(now, old) {
			return fmt.Errorf("writing %s: another program has changed it in the meantime; try again", path)
		}
		if err = staged.Commit(); err == nil {
			err = atomicfile.SyncFolder(folder)
		}
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// openFolder opens a folder, creating it if it is missing, without leaving root
// unless that is "".
func openFolder(root, dir string, mode fs.FileMode) (*os.Root, error) {
	if root == "" {
		if err := os.MkdirAll(dir, mode); err != nil {
			return nil, fmt.Errorf("creating %s: %w", dir, text.Cause(err))
		}
		return os.OpenRoot(dir)
	}
	rel, err := filepath.Rel(root, dir)
	if real, linkErr := filepath.EvalSymlinks(root); linkErr == nil && !filepath.IsLocal(rel) {
		rel, err = filepath.Rel(real, dir)
	}
	if err != nil || !filepath.IsLocal(rel) {
		return nil, fmt.Errorf("%s leads outside the project %s; nothing was written", dir, root)
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := r.MkdirAll(rel, mode); err != nil {
		return nil, fmt.Errorf("creating %s: %w", dir, text.Cause(err))
	}
	return r.OpenRoot(rel)
}

// Create creates a settings file and its folder. If the file exists, the error
// wraps [fs.ErrExist]. root is as for [File].
func Create(root, path string, data []byte, mode, folderMode fs.FileMode) error {
	dir, name := filepath.Split(path)
	folder, err := openFolder(root, filepath.Clean(dir), folderMode)
	if err != nil {
		return err
	}
	defer folder.Close()
	f, err := folder.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return fmt.Errorf("creating %s: %w", path, text.Cause(err))
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = folder.Remove(name) // a partial file would be read the next time
	}
	return err
}

// Read returns the content of a settings file as [File] passes it to change; nil
// if the file does not exist.
func Read(path string) ([]byte, error) {
	data, _, err := readForEdit(path)
	return data, err
}

// readForEdit returns the content and the info of a file, both nil if it does not
// exist.
func readForEdit(path string) ([]byte, fs.FileInfo, error) {
	f, err := trust.Read(path, document.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, document.NewError([]document.Problem{document.Unreadable(path, err)})
	}
	info, err := os.Stat(path)
	return f.Data, info, err
}
