package builtin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// workspace is the directory tree that file tools may touch. Paths below are
// relative to it, cleaned, with slashes, "." for itself; [workspace.resolve]
// makes them. It is opened on first use and safe for concurrent use.
type workspace struct {
	dir              string   // absolute, as the settings say
	protected        []string // absolute
	home, configHome string   // where global excludes are looked for

	once sync.Once
	root *os.Root
	real string // dir without links
	err  error

	changing changeLock
}

func newWorkspace(opts *Options) *workspace {
	return &workspace{dir: opts.Workspace, protected: opts.Protected, home: opts.Home, configHome: opts.ConfigHome}
}

// open returns the root that every access goes through.
func (w *workspace) open() (*os.Root, error) {
	w.once.Do(func() {
		if !filepath.IsAbs(w.dir) {
			w.err = fmt.Errorf("opening workspace %q: not an absolute path", w.dir)
			return
		}
		dir, err := filepath.EvalSymlinks(w.dir)
		if err != nil {
			w.err = fmt.Errorf("opening workspace: %w", err)
			return
		}
		w.real = dir
		if w.root, err = os.OpenRoot(dir); err != nil {
			w.err = fmt.Errorf("opening workspace: %w", err)
		}
	})
	return w.root, w.err
}

func (w *workspace) close() error {
	w.once.Do(func() { w.err = os.ErrClosed })
	if w.root == nil {
		return nil
	}
	return w.root.Close()
}

// errKind tells that a path is neither a regular file nor a directory.
var errKind = errors.New("is a device, pipe or socket; only regular files and directories can be used")

// openFile opens the regular file or directory at rel for reading. It never
// blocks on a pipe and never opens a device: errors wrap errKind then, and
// fs.ErrNotExist and the like otherwise.
func (w *workspace) openFile(rel string) (*os.File, fs.FileInfo, error) {
	root, err := w.open()
	if err != nil {
		return nil, nil, err
	}
	if isLogin(rel) {
		return nil, nil, errLogin
	}
	return openIn(root, rel)
}

// errLogin tells that a file holds the tokens of a login.
var errLogin = errors.New("holds a login of toolreg, which no tool reads")

// isLogin reports whether a path, links resolved, has the name that package
// oauth gives the files of logins: login-, 32 hex digits, .json. They lie in the
// workspace where that is the home directory.
func isLogin(rel string) bool {
	const before, hash, after = "login-", 32, ".json"
	name := rel[strings.LastIndexByte(rel, '/')+1:]
	if len(name) != len(before)+hash+len(after) { // most of them
		return false
	}
	name = strings.ToLower(name)
	return strings.HasPrefix(name, before) && strings.HasSuffix(name, after) &&
		strings.Trim(name[len(before):len(before)+hash], "0123456789abcdef") == ""
}

func openIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	// Opening a device can have effects of its own, so it is looked at first;
	// the look after opening is the one that counts.
	if info, err := root.Lstat(name); err != nil {
		return nil, nil, reason(err)
	} else if !isUsable(info.Mode()) && info.Mode()&fs.ModeSymlink == 0 {
		return nil, nil, errKind
	}
	f, err := root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, nil, reason(err)
	}
	info, err := f.Stat()
	if err == nil && !isUsable(info.Mode()) {
		err = errKind
	}
	if err != nil {
		f.Close()
		return nil, nil, reason(err)
	}
	return f, info, nil
}

func isUsable(m fs.FileMode) bool { return m.IsRegular() || m.IsDir() }

// readFile returns the whole regular file at rel. A file of more than limit
// bytes is an error.
func (w *workspace) readFile(rel string, limit int64) ([]byte, fs.FileInfo, error) {
	f, info, err := w.openFile(rel)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.IsDir() {
		return nil, nil, errIsDir
	}
	// The size is a hint alone: the file may grow, and /proc says 0.
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, nil, reason(err)
	}
	if int64(len(data)) > limit {
		return nil, nil, fmt.Errorf("is larger than %s", byteSize(limit))
	}
	return data, info, nil
}

var errIsDir = errors.New("is a directory")

// reason takes the operation and path off an error of the os package: the
// messages of tools name the path once, as the caller wrote it.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}

// byteSize prints a size as people read it.
func byteSize(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
