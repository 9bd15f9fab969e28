package session

import (
	"path/filepath"
	"sync"

	"github.com/toolreg/toolreg/internal/state"
)

// Folders opens the user's folders for state and for caches on first need. It is
// safe for concurrent use.
type Folders struct {
	Environ []string // "K=V", which decides where they are

	once sync.Once
	dir  *state.Dir
	err  error
}

// State returns the folder for what is to be remembered. Without one the program
// runs on and remembers nothing; the error says why.
func (f *Folders) State() (*state.Dir, error) {
	f.once.Do(func() {
		var path string
		if path, f.err = state.DefaultDir(f.Environ); f.err == nil {
			f.dir, f.err = state.OpenDir(path)
		}
	})
	return f.dir, f.err
}

// Cache returns a folder for what can be lost at any time.
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
