package state

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Put writes a file as a whole, without a lock: of two runs that write at once
// one wins. It is for caches, whose directory [Dir.Prune] keeps small. Errors
// wrap [ErrUnavailable].
func (d *Dir) Put(name string, data []byte) error {
	return d.with(name, func(root *os.Root) error { return replace(root, name, data) })
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
		return mustWork(err)
	}
	defer root.Close()
	return mustWork(do(root))
}

// Prune removes the files that were written longer ago than age, and the oldest
// beyond the keep newest. Errors wrap [ErrUnavailable]; an absent directory is
// none.
func (d *Dir) Prune(now time.Time, age time.Duration, keep int) error {
	root, err := d.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unavailable(err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return mustWork(err)
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for i, f := range files {
		if i >= keep || now.Sub(f.ModTime()) > age {
			_ = root.Remove(f.Name()) // another run may have been faster
		}
	}
	return nil
}
