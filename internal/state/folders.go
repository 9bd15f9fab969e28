package state

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/toolreg/toolreg/internal/expand"
)

// The folders in the state folder.
const (
	neutralName = "neutral"
	sandboxName = "sandbox"
	socketsName = "kept"
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

// Sockets returns the folder for the sockets of kept servers: below XDG_RUNTIME_DIR, else in
// the state folder.
func (f *Folders) Sockets() (*Dir, error) {
	_, err := DefaultDir(f.Environ)
	for _, path := range f.SocketFolders() {
		var d *Dir
		if d, err = OpenDir(path); err == nil {
			return d, nil
		}
	}
	return nil, err
}

// SocketFolders returns the paths of the folders in which there may be sockets of kept
// servers, the preferred one first. They need not exist.
func (f *Folders) SocketFolders() []string {
	var out []string
	runtime, _ := expand.Find(f.Environ, "XDG_RUNTIME_DIR")
	if info, err := os.Stat(runtime); err == nil && info.IsDir() && filepath.IsAbs(runtime) {
		out = append(out, filepath.Join(runtime, "toolreg"))
	}
	if path, err := DefaultDir(f.Environ); err == nil {
		out = append(out, filepath.Join(path, socketsName))
	}
	return out
}

// Secrets returns the folder for secrets that entries of servers refer to, which only the
// user can read.
func (f *Folders) Secrets() (*Dir, error) { return f.data("secrets") }

// Bundles returns the folder for the unpacked bundles of servers, by their SHA-256.
func (f *Folders) Bundles() (*Dir, error) { return f.data("bundles") }

func (f *Folders) data(name string) (*Dir, error) {
	base, err := DefaultDataDir(f.Environ)
	if err != nil {
		return nil, err
	}
	return OpenDir(filepath.Join(base, name))
}

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
