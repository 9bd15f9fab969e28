// Package workspace provides the directory tree that the built-in tools may
// use: paths as a model writes them are resolved inside it, files are read,
// written and locked through one [os.Root], folders are walked, and ignore
// files are applied.
//
// No path, link or race leads outside it. Errors about paths are worded as
// results of tools.
package workspace

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/git"
	"github.com/toolreg/toolreg/internal/text"
)

// Dir is the directory tree that file tools may use; an [Editor] changes it. The methods take paths
// that are relative to it and cleaned, with slashes and without links, as
// [Dir.Param] returns them; "." is the tree itself. It is opened on first use.
// Dir is safe for concurrent use.
type Dir struct {
	dir  string   // absolute, as in the settings
	user git.User // where to look for global excludes

	once sync.Once
	root *os.Root
	real string // dir with links resolved
	err  error
}

// Options define the workspace. All paths are absolute.
type Options struct {
	// Dir is the folder; "" means that there is none, and every access fails.
	Dir string
	// Protected are toolreg's own files and folders, which an [Editor] refuses to
	// change; they need not exist.
	Protected []string
	// Home and ConfigHome are where to look for git's global excludes; "" means the
	// user's home and $XDG_CONFIG_HOME or .config in the home.
	Home, ConfigHome string
}

// maxPath is the maximum length of a path in bytes; systems do not accept longer
// ones.
const maxPath = 4096

// New returns the workspace without opening anything.
func New(opts Options) *Dir {
	return &Dir{dir: opts.Dir, user: git.User{Home: opts.Home, ConfigHome: opts.ConfigHome}}
}

// Path returns the path of the workspace with links resolved.
func (w *Dir) Path() (string, error) {
	_, err := w.Root()
	return w.real, err
}

// Root returns the root through which files are accessed.
func (w *Dir) Root() (*os.Root, error) {
	w.once.Do(func() {
		if w.dir == "" {
			w.err = errors.New("there is no workspace here")
			return
		}
		if !filepath.IsAbs(w.dir) {
			w.err = fmt.Errorf("opening the workspace %q: not an absolute path", w.dir)
			return
		}
		dir, err := filepath.EvalSymlinks(w.dir)
		if err != nil {
			w.err = fmt.Errorf("opening the workspace %s: %w", text.Quote(w.dir), text.Cause(err))
			return
		}
		w.real = dir
		if w.root, err = os.OpenRoot(dir); err != nil {
			w.err = fmt.Errorf("opening the workspace %s: %w", text.Quote(w.dir), text.Cause(err))
		}
	})
	return w.root, w.err
}

// Close releases the workspace; nothing can be opened after that.
func (w *Dir) Close() error {
	w.once.Do(func() { w.err = os.ErrClosed })
	if w.root == nil {
		return nil
	}
	return w.root.Close()
}

// ErrKind reports that a path is neither a regular file nor a directory.
var ErrKind = errors.New("is a device, pipe or socket; only regular files and directories can be used")

// ErrIsDir means that a path is a folder where a file is needed.
var ErrIsDir = errors.New("is a directory")

// URI returns the file URL of a path in the workspace.
func (w *Dir) URI(rel string) string {
	abs := filepath.ToSlash(filepath.Join(w.real, filepath.FromSlash(rel)))
	if !strings.HasPrefix(abs, "/") {
		abs = "/" + abs // a drive letter
	}
	return (&url.URL{Scheme: "file", Path: abs}).String()
}
