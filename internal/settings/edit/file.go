package edit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/trust"
)

// File replaces a settings file by what change makes of its bytes, at once:
// whoever reads sees the old file or the new one. old is nil for a file that is
// not there, which is made for this user alone, with its folder. A link is
// followed, the mode is kept. Nothing is written when change fails or changes
// nothing, or when somebody else has changed the file meanwhile. Runs of this
// program that may come at once have to be kept apart by the caller.
func File(path string, change func(old []byte) ([]byte, error)) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	old, mode, err := readForEdit(path)
	if err != nil {
		return err
	}
	out, err := change(old)
	if err != nil || old != nil && bytes.Equal(old, out) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temp, err := writeTemp(path, out, mode)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(temp) // gone already when all went well
	if now, _, err := readForEdit(path); err != nil || !bytes.Equal(now, old) {
		return fmt.Errorf("writing %s: somebody else has changed it meanwhile; try again", path)
	}
	return os.Rename(temp, path)
}

// Create makes a settings file with its folder. One that is there already is
// an error that wraps [fs.ErrExist].
func Create(path string, data []byte, mode, folder fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), folder); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(path) // half a file would count the next time
	}
	return err
}

func readForEdit(path string) ([]byte, fs.FileMode, error) {
	f, err := trust.Read(path, document.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err != nil {
		return nil, 0, settings.NewError([]document.Problem{document.Unreadable(path, err)})
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	return f.Data, info.Mode().Perm(), nil
}

// writeTemp writes a new file beside path, down to the disk.
func writeTemp(path string, data []byte, mode fs.FileMode) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".settings-*.tmp")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), err
}
