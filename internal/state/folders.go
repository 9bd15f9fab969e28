package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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

	users, caches opened

	mu    sync.Mutex
	apart string // see Detach; "" means the user's own
	dir   *Dir   // the state folder in apart
}

// opened is a folder that is opened once.
type opened struct {
	once sync.Once
	dir  *Dir
	err  error
}

func (o *opened) get(environ []string, place func(environ []string) (string, error)) (*Dir, error) {
	o.once.Do(func() {
		var path string
		if path, o.err = place(environ); o.err == nil {
			o.dir, o.err = OpenDir(path)
		}
	})
	return o.dir, o.err
}

// State returns the state folder. If it cannot be used, the error says why, and the program
// continues without storing anything.
func (f *Folders) State() (*Dir, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state()
}

// state is State for a caller that holds mu.
func (f *Folders) state() (*Dir, error) {
	if f.dir != nil {
		return f.dir, nil
	}
	return f.own()
}

func (f *Folders) own() (*Dir, error) { return f.users.get(f.Environ, DefaultDir) }

// Detach makes all later calls of [Folders.State] and [Folders.Cache] return folders below dir, an
// empty folder of the caller's, so that nothing that is stored from then on is read by other runs.
// The user's decisions (approvals, trust, to whom names belong) are copied there first. What survives
// is the log of sandboxed programs, which says what to clean up, and the output of tools that results
// name.
func (f *Folders) Detach(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.apart != "" {
		return nil
	}
	from, err := f.state()
	to, openErr := OpenDir(filepath.Join(dir, "state"))
	if openErr != nil {
		return openErr
	}
	f.apart, f.dir = dir, to
	if err != nil {
		return nil // there is nothing to copy
	}
	if err := copyFiles(to, from, decides); err != nil {
		return err
	}
	names, err := OpenDir(filepath.Join(from.Path, namesFolder))
	if err != nil {
		return err
	}
	return copyFiles(&Dir{Path: filepath.Join(to.Path, namesFolder)}, names, func(string) bool { return true })
}

// decides reports whether a file of the state folder contains the user's decisions, or the key that
// these are made with.
func decides(name string) bool {
	return name == keyFile || name == "approvals.json" || strings.HasPrefix(name, "trust-")
}

func copyFiles(to, from *Dir, which func(name string) bool) error {
	names, err := from.Names("", "")
	if err != nil {
		return err
	}
	for _, name := range names {
		if !which(name) || strings.HasSuffix(name, lockSuffix) {
			continue
		}
		data, err := from.Read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = to.Put(name, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Neutral returns the absolute path of a folder for programs that must not start in a project:
// one in the state folder that only the user can write to, which it creates. If that is not
// possible, such as on a full disk, it is the root folder, provided that only root can write to it.
func (f *Folders) Neutral() (string, error) {
	path, err := f.folder(neutralName)
	if err != nil && isRoots("/") {
		return "/", nil
	}
	return path, err
}

// Sandbox returns the absolute path of a folder for the records of sandboxed programs, which must
// survive if toolreg is killed. It creates the folder.
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
	base, err := f.own()
	if err != nil {
		return "", err
	}
	d := Dir{Path: filepath.Join(base.Path, name)}
	root, err := d.open(true)
	if err != nil {
		return "", unavailable(err)
	}
	return d.Path, root.Close()
}

// OutputName is the name of the cache folder with the output of tools that is too long for their
// results, which name the files.
const OutputName = "output"

// Cache returns a folder for files that may be deleted at any time.
func (f *Folders) Cache(name string) (*Dir, error) {
	f.mu.Lock()
	apart := f.apart
	f.mu.Unlock()
	if apart != "" && name != OutputName {
		return OpenDir(filepath.Join(apart, "cache", name))
	}
	base, err := f.caches.get(f.Environ, DefaultCacheDir)
	if err != nil {
		return nil, err
	}
	return OpenDir(filepath.Join(base.Path, name))
}

// program is the name of our folder in the user's folders.
const program = "toolreg"

// DefaultDir returns the folder for state: $XDG_STATE_HOME/toolreg, or the
// platform's folder for such files, usually ~/.local/state/toolreg. environ has
// "K=V" entries. An XDG variable that is not an absolute path is ignored, as
// the XDG specification requires. Without a home folder the error wraps
// [ErrUnavailable].
func DefaultDir(environ []string) (string, error) {
	return location(environ, runtime.GOOS, statePlace())
}

// DefaultCacheDir returns the folder for files that may be deleted at any time:
// $XDG_CACHE_HOME/toolreg, usually ~/.cache/toolreg. Its errors are those of
// [DefaultDir].
func DefaultCacheDir(environ []string) (string, error) {
	return location(environ, runtime.GOOS, cachePlace())
}

// DefaultDataDir returns the folder for files that settings refer to:
// $XDG_DATA_HOME/toolreg, usually ~/.local/share/toolreg. Its errors are those of
// [DefaultDir].
func DefaultDataDir(environ []string) (string, error) {
	return location(environ, runtime.GOOS, place{
		xdg: "XDG_DATA_HOME", unix: ".local/share", darwin: "Library/Application Support", windows: "data"})
}

// place is the location of one kind of files on each platform.
type place struct {
	xdg     string // variable with the parent folder
	unix    string // parent below the home folder
	darwin  string // the same
	windows string // folder within ours, below %LOCALAPPDATA%
}

func statePlace() place {
	return place{xdg: "XDG_STATE_HOME", unix: ".local/state", darwin: "Library/Application Support", windows: "state"}
}

func cachePlace() place {
	return place{xdg: "XDG_CACHE_HOME", unix: ".cache", darwin: "Library/Caches", windows: "cache"}
}

func location(environ []string, goos string, p place) (string, error) {
	env := expand.NewEnviron(environ)
	if dir := env.Get(p.xdg); filepath.IsAbs(dir) {
		return filepath.Join(dir, program), nil
	}
	if goos == "windows" {
		dir := env.Get("LOCALAPPDATA")
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("%w: neither %s nor LOCALAPPDATA names a directory", ErrUnavailable, p.xdg)
		}
		return filepath.Join(dir, program, p.windows), nil
	}
	home := env.Get("HOME")
	if !filepath.IsAbs(home) {
		return "", fmt.Errorf("%w: neither %s nor HOME is set to an absolute path; set one of them",
			ErrUnavailable, p.xdg)
	}
	parent := p.unix
	if goos == "darwin" {
		parent = p.darwin
	}
	return filepath.Join(home, filepath.FromSlash(parent), program), nil
}

// namesFolder is the folder of [Names].
const namesFolder = "names"
