package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrUnavailable is the cause of all errors that mean that state cannot be kept:
// no home, a full or read-only disk, a directory that is not ours, a lock that
// never comes free. The caller warns and goes on without.
var ErrUnavailable = errors.New("state cannot be saved")

// MaxFile bounds what Read and Update take from one file, in bytes.
const MaxFile = 64 << 20

// DefaultWait is how long Update waits for another run's lock.
const DefaultWait = 10 * time.Second

// Dir is a directory of small files. It may be shared by goroutines. The
// directory comes into being with the first file.
type Dir struct {
	Path string        // absolute
	Wait time.Duration // longest wait for a lock; 0 = DefaultWait
}

// OpenDir returns the directory at path after checking what is there. A
// directory that does not exist is fine. One that is a symbolic link, no
// directory or another user's is an error that wraps [ErrUnavailable].
func OpenDir(path string) (*Dir, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%w: %q is not an absolute path", ErrUnavailable, path)
	}
	d := &Dir{Path: filepath.Clean(path)}
	root, err := d.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	return d, root.Close()
}

// open opens the directory, making it first if create is set. Without create an
// absent directory is an fs.ErrNotExist.
func (d *Dir) open(create bool) (*os.Root, error) {
	if create {
		if err := makeDir(d.Path); err != nil {
			return nil, err
		}
	}
	named, err := os.Lstat(d.Path)
	if err != nil {
		return nil, err
	}
	if named.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("%s is a symbolic link; name the directory itself", d.Path)
	}
	if !named.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", d.Path)
	}
	root, err := os.OpenRoot(d.Path)
	if err != nil {
		return nil, err
	}
	if err := d.check(root, named); err != nil {
		_ = root.Close() // only read from
		return nil, err
	}
	return root, nil
}

// check makes sure that root is the directory that was named, ours, and closed to
// others.
func (d *Dir) check(root *os.Root, named fs.FileInfo) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(info, named) {
		return fmt.Errorf("%s was replaced while it was opened", d.Path)
	}
	if err := checkOwner(info); err != nil {
		return fmt.Errorf("%s %w", d.Path, err)
	}
	if openToOthers(info) {
		if err := root.Chmod(".", 0o700); err != nil {
			return fmt.Errorf("%s is open to others: %w", d.Path, err)
		}
	}
	return nil
}

// makeDir makes the directory and its parents, 0700 whatever the umask.
func makeDir(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if parent := filepath.Dir(path); parent != path {
		if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) {
			if err := makeDir(parent); err != nil {
				return err
			}
		}
	}
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil // another run was faster
	}
	if err != nil {
		return err
	}
	return os.Chmod(path, 0o700)
}

// Read returns the content of a file. An absent one is an error that wraps
// [fs.ErrNotExist]; every other error wraps [ErrUnavailable].
func (d *Dir) Read(name string) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readAll(f)
	return data, unavailable(err)
}

// Open opens a file for reading, for logs. It errs like [Dir.Read]; the caller
// closes the file.
func (d *Dir) Open(name string) (*os.File, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	root, err := d.open(false)
	if err != nil {
		return nil, unavailable(err)
	}
	defer root.Close()
	f, err := openFile(root, name, os.O_RDONLY)
	return f, unavailable(err)
}

// openFile opens an existing regular file of ours.
func openFile(root *os.Root, name string, flag int) (*os.File, error) {
	named, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", filepath.Join(root.Name(), name))
	}
	if err := checkOwner(named); err != nil {
		return nil, fmt.Errorf("%s %w", filepath.Join(root.Name(), name), err)
	}
	return root.OpenFile(name, flag, 0)
}

func readAll(f *os.File) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes; move it away", f.Name(), MaxFile)
	}
	return data, nil
}

// checkName accepts the name of a file in the directory itself.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("%w: %q is not a valid name for a state file", ErrUnavailable, name)
	}
	return nil
}

// unavailable wraps err with the sentinel. An absent file is no such case.
func unavailable(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
