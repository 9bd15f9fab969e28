package state

import (
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/toolreg/toolreg/internal/expand"
)

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
	return location(environ, runtime.GOOS, dataPlace())
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

func dataPlace() place {
	return place{xdg: "XDG_DATA_HOME", unix: ".local/share", darwin: "Library/Application Support", windows: "data"}
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
		return "", fmt.Errorf("%w: neither %s nor HOME is set to an absolute path; set one of them", ErrUnavailable, p.xdg)
	}
	parent := p.unix
	if goos == "darwin" {
		parent = p.darwin
	}
	return filepath.Join(home, filepath.FromSlash(parent), program), nil
}
