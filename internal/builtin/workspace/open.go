package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/git"
	"github.com/toolreg/toolreg/internal/text"
)

// errMoved means that a folder on the path was replaced by a link after the path
// was resolved. An os.Root would follow the link to another folder of the
// workspace.
var errMoved = errors.New("was replaced by a link while it was being used; try again")

// enter opens the folder at rel. No part of rel may be a link. If create is set,
// missing folders are created.
func (w *Dir) enter(rel string, create bool) (*os.Root, error) {
	root, err := w.Root()
	if err != nil {
		return nil, err
	}
	at, err := root.OpenRoot(".")
	for _, part := range split(rel) {
		if err != nil {
			return nil, text.Cause(err)
		}
		above := at
		at, err = openStep(above, part, create)
		above.Close()
	}
	return at, text.Cause(err)
}

// OpenStart opens the folder in which a program is to start. The program starts
// there even if the path is replaced later.
func (w *Dir) OpenStart(rel string) (*os.File, error) {
	folder, err := w.enter(rel, false)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return folder.Open(".")
}

// openStep opens the folder with the given name in above.
func openStep(above *os.Root, name string, create bool) (*os.Root, error) {
	at, err := above.OpenRoot(name)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := above.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		at, err = above.OpenRoot(name)
	}
	if err != nil {
		if info, e := above.Lstat(name); e == nil && info.Mode().IsRegular() {
			err = syscall.ENOTDIR // package os returns its own error for this
		}
		return nil, err
	}
	opened, err := at.Stat(".")
	if err == nil {
		err = isAt(above, name, opened)
	}
	if err != nil {
		at.Close()
		return nil, err
	}
	return at, nil
}

// isAt returns an error unless the opened file is the entry with that name
// itself, rather than the target of a link.
func isAt(folder *os.Root, name string, opened fs.FileInfo) error {
	named, err := folder.Lstat(name)
	if err == nil && !os.SameFile(named, opened) {
		return errMoved
	}
	return err
}

// parent opens the folder that contains rel, and returns the name of rel in it.
func (w *Dir) parent(rel string) (*os.Root, string, error) {
	folder, err := w.enter(path.Dir(rel), false)
	return folder, path.Base(rel), err
}

// OpenFile opens the regular file or directory at rel for reading. It never
// blocks on a named pipe and never opens a device: for these the error wraps
// ErrKind. For a missing file it wraps fs.ErrNotExist.
func (w *Dir) OpenFile(rel string) (*os.File, fs.FileInfo, error) {
	folder, name, err := w.parent(rel)
	if err != nil {
		return nil, nil, err
	}
	defer folder.Close()
	if IsLogin(rel) {
		return nil, nil, errLogin
	}
	f, info, err := openIn(folder, name)
	if err != nil {
		return nil, nil, err
	}
	if err := isAt(folder, name, info); err != nil {
		f.Close()
		return nil, nil, text.Cause(err)
	}
	return f, info, nil
}

// errLogin means that a file contains the tokens of a login.
var errLogin = errors.New("contains a login of toolreg; tools cannot read it")

// IsLogin reports whether a path with links resolved has the name of a login
// file of package oauth: login-, 32 hex digits, .json. Such files are in the
// workspace if it is the home directory.
func IsLogin(rel string) bool {
	const before, hash, after = "login-", 32, ".json"
	name := text.Folded(rel[strings.LastIndexByte(rel, '/')+1:])
	if len(name) != len(before)+hash+len(after) { // most names
		return false
	}
	return strings.HasPrefix(name, before) && strings.HasSuffix(name, after) &&
		strings.Trim(name[len(before):len(before)+hash], "0123456789abcdef") == ""
}

func openIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	// Opening a device can have side effects, so the type is checked first. The check
	// after opening is the one that cannot be raced.
	if info, err := root.Lstat(name); err != nil {
		return nil, nil, text.Cause(err)
	} else if !isUsable(info.Mode()) && info.Mode()&fs.ModeSymlink == 0 {
		return nil, nil, ErrKind
	}
	f, err := root.OpenFile(name, os.O_RDONLY|git.OpenNonblock, 0)
	if err != nil {
		return nil, nil, text.Cause(err)
	}
	info, err := f.Stat()
	if err == nil && !isUsable(info.Mode()) {
		err = ErrKind
	}
	if err != nil {
		f.Close()
		return nil, nil, text.Cause(err)
	}
	return f, info, nil
}

func isUsable(m fs.FileMode) bool { return m.IsRegular() || m.IsDir() }

// ReadFile returns the content of the regular file at rel. It returns an error
// if the file is larger than limit bytes.
func (w *Dir) ReadFile(rel string, limit int64) ([]byte, fs.FileInfo, error) {
	f, info, err := w.OpenFile(rel)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.IsDir() {
		return nil, nil, ErrIsDir
	}
	// The size is only a hint: the file may grow, and /proc reports 0.
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, nil, text.Cause(err)
	}
	if int64(len(data)) > limit {
		return nil, nil, fmt.Errorf("is larger than %s", tool.Size(limit))
	}
	return data, info, nil
}
