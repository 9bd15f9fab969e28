package session

import (
	"path/filepath"
	"sync"

	"github.com/toolreg/toolreg/internal/state"
)

// Folders opens the user's state and cache folders when first needed. It is
// safe for concurrent use.
type Folders struct {
	Environ []string // "K=V"; determines the location

	once sync.Once
	dir  *state.Dir
	err  error
}

// State returns the state folder. Without one the program continues and stores
// nothing; the error says why.
func (f *Folders) State() (*state.Dir, error) {
	f.once.Do(func() {
		var path string
		if path, f.err = state.DefaultDir(f.Environ); f.err == nil {
			f.dir, f.err = state.OpenDir(path)
		}
	})
	return f.dir, f.err
}

// Cache returns a folder for files that may be deleted at any time.
func (f *Folders) Cache(name string) (*state.Dir, error) {
	base, err := state.DefaultCacheDir(f.Environ)
	if err != nil {
		return nil, err
	}
	if _, err := state.OpenDir(base); err != nil {
		return nil, err
	}
	return state.OpenDir(filepath.Join(base, name))
}
