//go:build !linux

package workspace

import (
	"io/fs"
	"os"
	"time"

	"github.com/toolreg/toolreg/internal/text"
)

// Folder is an open folder, for searches. Entries are opened by the single name
// that the folder itself reported.
type Folder struct{ root *os.Root }

// OpenFolder opens the folder at rel.
func OpenFolder(root *os.Root, rel string) (*Folder, error) {
	r, err := root.OpenRoot(rel)
	if err != nil {
		return nil, text.Cause(err)
	}
	return &Folder{r}, nil
}

func (d *Folder) dir(name string) (*Folder, error) { return OpenFolder(d.root, name) }

// Open opens a regular file in the folder. For anything else it returns
// ErrKind.
func (d *Folder) Open(name string) (*File, error) {
	f, info, err := openIn(d.root, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		f.Close()
		return nil, ErrKind
	}
	return &File{File: f, Size: info.Size(), Changed: info.ModTime()}, nil
}

// Changed returns the modification time of an entry, or the zero time if it is
// unknown.
func (d *Folder) Changed(name string) time.Time {
	info, err := d.root.Lstat(name)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Close closes the folder.
func (d *Folder) Close() error { return d.root.Close() }

// Entries returns the entries of the folder in no particular order. If it
// returns an error, it also returns the entries read so far.
func (d *Folder) Entries() ([]fs.DirEntry, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// File is a regular file that is open for reading.
type File struct {
	*os.File
	Size    int64
	Changed time.Time
}
