package state

import (
	"path/filepath"
	"sync"
)

// The folders in the state folder.
const (
	neutralName = "neutral"
	sandboxName = "sandbox"
)

// Folders opens the user's state and cache folders when first needed. It is
// safe for concurrent use.
type Folders struct {
	Environ []string // "K=V"; determines the location

	once sync.Once
	dir  *Dir
	err  error
}

// State returns the state folder. Without one the program continues and stores
// nothing; the error says why.
func (f *Folders) State() (*Dir, error) {
	f.once.Do(func() {
		var path string
		if path, f.err = DefaultDir(f.Environ); f.err == nil {
			f.dir, f.err = OpenDir(path)
		}
	})
	return f.dir, f.err
}

// Neutral returns the absolute path of a folder in the state folder that only the user can
// write to, for programs that must not start in a project. It creates the folder.
func (f *Folders) Neutral() (string, error) { return f.folder(neutralName) }

// Sandbox returns the absolute path of a folder for what sandboxed programs have done so
// far, which must survive if toolreg is killed. It creates the folder.
func (f *Folders) Sandbox() (string, error) { return f.folder(sandboxName) }

func (f *Folders) folder(name string) (string, error) {
	base, err := f.State()
	if err != nil {
		return "", err
	}
	d, err := OpenDir(filepath.Join(base.Path, name))
	if err != nil {
		return "", err
	}
	root, err := d.open(true)
	if err != nil {
		return "", unavailable(err)
	}
	return d.Path, root.Close()
}

// Cache returns a folder for files that may be deleted at any time.
func (f *Folders) Cache(name string) (*Dir, error) {
	base, err := DefaultCacheDir(f.Environ)
	if err != nil {
		return nil, err
	}
	if _, err := OpenDir(base); err != nil {
		return nil, err
	}
	return OpenDir(filepath.Join(base, name))
}
