package state

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/atomicfile"
)

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
		return failed(err)
	}
	defer root.Close()
	return failed(do(root))
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
			return removed, failed(err)
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
		return nil, nil, failed(errors.Join(err, root.Close()))
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
			return failed(err)
		}
		return failed(atomicfile.SyncFolder(root))
	})
}
