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

// Put writes a file as a whole, without a lock: of two runs that write at once
// one wins. It is for caches, whose directory [Dir.Sweep] keeps small, and does not
// wait for the disk: what a power failure leaves may be cut off or empty, and
// readers have to see that. Errors wrap [ErrUnavailable].
func (d *Dir) Put(name string, data []byte) error {
	return d.with(name, func(root *os.Root) error { return replace(root, name, data, false) })
}

// Create makes a new file and opens it for writing; the caller closes it. A
// name that is taken is an error. Errors wrap [ErrUnavailable].
func (d *Dir) Create(name string) (f *os.File, err error) {
	err = d.with(name, func(root *os.Root) error {
		f, err = root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			err = f.Chmod(0o600)
		}
		return err
	})
	return f, err
}

func (d *Dir) with(name string, do func(*os.Root) error) error {
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

// Bounds say what of a cache stays. A field of 0 bounds nothing.
type Bounds struct {
	Age   time.Duration // since a file was written
	Files int
	Bytes int64 // of all files
}

// staleTemp is the age from which a file that was never finished is rubbish.
const staleTemp = time.Minute

// Sweep removes the oldest files until the rest is within the bounds, and what
// killed runs left unfinished. Errors wrap [ErrUnavailable]; an absent directory
// is none.
func (d *Dir) Sweep(now time.Time, b Bounds) error {
	root, err := d.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unavailable(err)
	}
	defer root.Close()
	files, err := regularFiles(root)
	if err != nil {
		return failed(err)
	}
	var bytes int64
	kept := 0
	for _, f := range files {
		age := now.Sub(f.ModTime())
		temp := strings.Contains(f.Name(), tempInfix)
		if temp && age <= staleTemp {
			continue // somebody is writing it
		}
		over := b.Age > 0 && age > b.Age || b.Files > 0 && kept >= b.Files || b.Bytes > 0 && bytes+f.Size() > b.Bytes
		if temp || over {
			_ = root.Remove(f.Name()) // another run may have been faster
			continue
		}
		kept, bytes = kept+1, bytes+f.Size()
	}
	return nil
}

// Clear removes all files but locks, and says how many. An absent directory has
// none. Errors wrap [ErrUnavailable].
func (d *Dir) Clear() (removed int, err error) {
	root, err := d.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, unavailable(err)
	}
	defer root.Close()
	files, err := regularFiles(root)
	if err != nil {
		return 0, failed(err)
	}
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

// Files returns the regular files, newest first; none of an absent directory.
// Errors wrap [ErrUnavailable].
func (d *Dir) Files() ([]fs.FileInfo, error) {
	root, err := d.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	defer root.Close()
	files, err := regularFiles(root)
	return files, failed(err)
}

func regularFiles(root *os.Root) ([]fs.FileInfo, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	return files, nil
}

// Names lists the files whose names begin and end as given, sorted. An absent
// directory has none. Errors wrap [ErrUnavailable].
func (d *Dir) Names(prefix, suffix string) ([]string, error) {
	root, err := d.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, failed(err)
	}
	var out []string
	for _, e := range entries {
		if name := e.Name(); e.Type().IsRegular() && strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) {
			out = append(out, name)
		}
	}
	return out, nil
}

// Remove removes a file under the lock of [Dir.Update]; the lock file stays. An
// absent file is no error. Errors are as those of Update.
func (d *Dir) Remove(ctx context.Context, name string) error {
	return d.locked(ctx, name, func(root *os.Root) error {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failed(err)
		}
		return failed(atomicfile.SyncFolder(root))
	})
}
