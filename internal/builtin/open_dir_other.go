//go:build !linux

package builtin

import (
	"os"
	"time"
)

// openDir is an open folder, for searches. What is opened in it is named by a
// single name that the folder itself gave.
type openDir struct{ root *os.Root }

// openDirIn opens the folder at rel.
func openDirIn(root *os.Root, rel string) (*openDir, error) {
	r, err := root.OpenRoot(rel)
	if err != nil {
		return nil, reason(err)
	}
	return &openDir{r}, nil
}

// dir opens a folder in the folder.
func (d *openDir) dir(name string) (*openDir, error) { return openDirIn(d.root, name) }

// open opens a regular file in the folder; errKind tells of anything else.
func (d *openDir) open(name string) (*openFile, error) {
	f, info, err := openIn(d.root, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		f.Close()
		return nil, errKind
	}
	return &openFile{File: f, size: info.Size(), changed: info.ModTime()}, nil
}

// changed tells when an entry was changed, the zero time where that is unknown.
func (d *openDir) changed(name string) time.Time {
	info, err := d.root.Lstat(name)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func (d *openDir) Close() error { return d.root.Close() }

// entries returns the entries of the folder in no order. What was read before
// an error counts.
func (d *openDir) entries() ([]dirent, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	out := make([]dirent, len(entries))
	for i, e := range entries {
		out[i] = dirent{name: e.Name(), kind: e.Type()}
	}
	return out, err
}

// openFile is a regular file open for reading.
type openFile struct {
	*os.File
	size    int64
	changed time.Time
}
