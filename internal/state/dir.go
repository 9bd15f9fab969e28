// Package state stores small files in the user's state and cache folders: approvals,
// trust, caches, the audit log.
//
// Every change reads the file, writes a new one and renames it while holding a
// lock that is released when its holder dies. Concurrent runs lose nothing, and
// a run that is killed leaves either the old or the new file. Files have mode
// 0600 in folders with mode 0700, regardless of the umask. All access goes
// through the opened folder, which must be a real folder that belongs to us.
//
// If something cannot be stored, the run continues: such errors wrap
// [ErrUnavailable], and the caller warns.
package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/atomicfile"
)

// ErrUnavailable is wrapped by all errors that mean that state cannot be read
// or stored: no home folder, a full or read-only disk, a folder of another user, a
// lock that is never released. The caller warns and continues without state.
var ErrUnavailable = errors.New("state cannot be used")

// MaxFile limits the size of a file for Read and Update, in bytes.
const MaxFile = 64 << 20

// DefaultWait is how long Update waits for the lock of another run.
const DefaultWait = 10 * time.Second

// Dir is a folder of small files. It is safe for concurrent use. The folder is
// created with the first file.
type Dir struct {
	Path string        // absolute
	Wait time.Duration // how long to wait for a lock; 0 means DefaultWait

	mu    sync.Mutex
	turns map[string]chan struct{} // full while a goroutine has or waits for the lock of a name
}

// OpenDir returns the folder at path after checking it. The folder need not
// exist. If it is a symbolic link, not a folder, or belongs to another user,
// the error wraps [ErrUnavailable].
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

// open opens the folder and, if create is set, creates it first. Otherwise the
// error for an absent folder is fs.ErrNotExist.
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
		_ = root.Close() // nothing was written
		return nil, err
	}
	return root, nil
}

// check verifies that root is the named folder, belongs to us, and is inaccessible to
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
			return fmt.Errorf("%s is accessible to other users: %w", d.Path, err)
		}
	}
	return nil
}

// makeDir creates the folder and its parents with mode 0700 regardless of the
// umask.
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
		return nil // another run created it first
	}
	if err != nil {
		return fmt.Errorf("creating %s: %w", path, errors.Unwrap(err))
	}
	return os.Chmod(path, 0o700)
}

// Read returns the content of a file. For an absent file the error wraps
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

// Open opens a file for reading, for logs. Its errors are those of [Dir.Read];
// the caller closes the file.
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

// createFile creates a file of ours, if it is absent, with a mode that does not depend on the umask.
func createFile(root *os.Root, name string, flag int) (*os.File, error) {
	f, err := root.OpenFile(name, flag|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func readAll(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// What is read into a slice that grows is copied again and again.
	data := bytes.NewBuffer(make([]byte, 0, min(info.Size(), MaxFile)+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(f, MaxFile+1)); err != nil {
		return nil, err
	}
	if data.Len() > MaxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes; move it away", f.Name(), MaxFile)
	}
	return data.Bytes(), nil
}

// checkName accepts names of files directly in the folder.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("%w: %q is not a valid name for a state file", ErrUnavailable, name)
	}
	return nil
}

// unavailable wraps err with ErrUnavailable, except for an absent file.
func unavailable(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrUnavailable) {
		return err
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok { // without the system call
		err = fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Put writes a whole file without a lock; if two runs write at once, one of
// them wins. It is for caches, which [Dir.Sweep] keeps small. It does not wait
// for the disk, so after a power failure a file may be truncated or empty, and
// readers have to detect that. Errors wrap [ErrUnavailable].
func (d *Dir) Put(name string, data []byte) error {
	return d.withRoot(name, func(root *os.Root) error { return replace(root, name, data, false) })
}

// Delete removes a file without a lock. An absent file is not an error. Errors wrap [ErrUnavailable].
func (d *Dir) Delete(name string) error {
	return d.withRoot(name, func(root *os.Root) error {
		if err := root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// Create creates a new file and opens it for writing; the caller closes it. An
// existing name is an error. Errors wrap [ErrUnavailable].
func (d *Dir) Create(name string) (f *os.File, err error) {
	err = d.withRoot(name, func(root *os.Root) error {
		f, err = createFile(root, name, os.O_EXCL|os.O_WRONLY)
		return err
	})
	return f, err
}

func (d *Dir) withRoot(name string, do func(*os.Root) error) error {
	if err := checkName(name); err != nil {
		return err
	}
	root, err := d.open(true)
	if err != nil {
		return storeError(err)
	}
	defer root.Close()
	return storeError(do(root))
}

// Bounds limit a cache. A field of 0 sets no limit.
type Bounds struct {
	Age   time.Duration // since the file was written
	Files int
	Bytes int64 // of all files
}

// staleTemp is the age at which an unfinished file is removed.
const staleTemp = time.Minute

// Sweep removes unfinished files of killed runs, and then the oldest files until the rest
// is within the bounds. Errors wrap [ErrUnavailable]; an absent folder is not an error.
func (d *Dir) Sweep(now time.Time, b Bounds) error {
	root, files, err := d.list()
	if root == nil {
		return err
	}
	defer root.Close()
	var bytes int64
	kept := 0
	for _, f := range files {
		age := now.Sub(f.ModTime())
		temp := strings.Contains(f.Name(), tempInfix)
		if temp && age <= staleTemp {
			continue // another run may still be writing it
		}
		over := b.Age > 0 && age > b.Age || b.Files > 0 && kept >= b.Files || b.Bytes > 0 && bytes+f.Size() > b.Bytes
		if temp || over {
			_ = root.Remove(f.Name()) // another run may have removed it already
			continue
		}
		kept, bytes = kept+1, bytes+f.Size()
	}
	return nil
}

// Clear removes all files except locks, and returns how many. Errors wrap
// [ErrUnavailable]; an absent folder is not an error.
func (d *Dir) Clear() (removed int, err error) {
	root, files, err := d.list()
	if root == nil {
		return 0, err
	}
	defer root.Close()
	for _, f := range files {
		if strings.HasSuffix(f.Name(), lockSuffix) {
			continue
		}
		switch err := root.Remove(f.Name()); {
		case err == nil:
			removed++
		case !errors.Is(err, fs.ErrNotExist):
			return removed, storeError(err)
		}
	}
	return removed, nil
}

// Files returns the regular files, newest first. Errors wrap [ErrUnavailable];
// an absent folder has none.
func (d *Dir) Files() ([]fs.FileInfo, error) {
	root, files, err := d.list()
	if root != nil {
		defer root.Close()
	}
	return files, err
}

// list opens the folder and returns it with its regular files, newest first. If it is absent,
// or there is an error, root is nil.
func (d *Dir) list() (root *os.Root, files []fs.FileInfo, err error) {
	root, err = d.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, unavailable(err)
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, nil, storeError(errors.Join(err, root.Close()))
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortStableFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	return root, files, nil
}

// Names returns the sorted names of files with a prefix and a suffix. Errors
// wrap [ErrUnavailable]; an absent folder has none.
func (d *Dir) Names(prefix, suffix string) ([]string, error) {
	files, err := d.Files()
	var out []string
	for _, f := range files {
		if name := f.Name(); strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, err
}

// Remove removes a file while holding the lock of [Dir.Update]; the lock file stays. An
// absent file is not an error. Errors are those of Update.
func (d *Dir) Remove(ctx context.Context, name string) error {
	return d.locked(ctx, name, func(root *os.Root) error {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return storeError(err)
		}
		return storeError(atomicfile.SyncFolder(root))
	})
}
