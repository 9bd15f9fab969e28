package builtin

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"
)

// writeFile replaces or creates the file at rel, which [workspace.resolve]
// gave, with data: folders are created, the new content is on disk before it
// takes the name, and the old file's mode is kept. Readers see the old content
// or the new one, and a failure leaves the old one. Toolreg's own files, files
// without write permission and what is no regular file are refused.
//
// The file is new as an object: a hard link elsewhere keeps the old content.
func (w *workspace) writeFile(rel string, data []byte) error {
	s, err := w.stage(rel, data)
	if err != nil {
		return err
	}
	defer s.close()
	return s.commit()
}

// stagedFile is new content on disk that has not taken its name yet.
type stagedFile struct {
	parent     *os.Root // the folder that holds it
	shared     bool     // parent is another's to sync and to close
	temp, base string
	done       bool
}

// stage does all of writeFile but the last step. The caller closes what it
// returns.
func (w *workspace) stage(rel string, data []byte) (*stagedFile, error) {
	parent, err := w.parent(rel)
	if err != nil {
		return nil, err
	}
	s := &stagedFile{parent: parent, base: path.Base(rel)}
	if err := s.write(data); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// parent makes and opens the folder of a file that may be written. The caller
// closes it.
func (w *workspace) parent(rel string) (*os.Root, error) {
	if err := w.protect(rel); err != nil {
		return nil, err
	}
	root, err := w.open()
	if err != nil {
		return nil, err
	}
	if rel == "." {
		return nil, errIsDir
	}
	dir := path.Dir(rel)
	if err := root.MkdirAll(dir, 0o777); errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("creating folder %q: %w", dir, syscall.ENOTDIR)
	} else if err != nil {
		return nil, fmt.Errorf("creating folder %q: %w", dir, reason(err))
	}
	// All further steps name the file within its folder, so that a folder
	// exchanged meanwhile does not divert them.
	parent, err := root.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening folder %q: %w", dir, reason(err))
	}
	sweep(parent)
	return parent, nil
}

// The name of new content that has not taken its own name yet.
const (
	tempPrefix = ".toolreg-"
	tempSuffix = ".tmp"
	tempRandom = 26 // characters of rand.Text
	tempStale  = time.Minute
)

// sweep removes from a folder what a run left there that was killed while it
// wrote. What cannot be removed stays.
func sweep(folder *os.Root) {
	dir, err := openDirIn(folder, ".")
	if err != nil {
		return
	}
	defer dir.Close()
	found, _ := dir.entries(make([]byte, direntBuffer))
	for _, e := range found {
		random, isOurs := strings.CutPrefix(e.name, tempPrefix)
		random, isTemp := strings.CutSuffix(random, tempSuffix)
		if !isOurs || !isTemp || e.kind != 0 || len(random) != tempRandom || strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
			continue
		}
		if at := dir.changed(e.name); !at.IsZero() && time.Since(at) > tempStale {
			_ = folder.Remove(e.name)
		}
	}
}

// write looks at what is there and writes the new content beside it.
func (s *stagedFile) write(data []byte) error {
	old, err := s.parent.Lstat(s.base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.fill(nil, data)
	case err != nil:
		return reason(err)
	case old.IsDir():
		return errIsDir
	case old.Mode()&fs.ModeSymlink != 0:
		return errors.New("became a link while it was being written")
	case !old.Mode().IsRegular():
		return errKind
	case old.Mode().Perm()&0o222 == 0:
		return errors.New("is read-only; make it writable first")
	}
	return s.fill(old, data)
}

// fill writes a temporary file with the mode and owner of old.
func (s *stagedFile) fill(old fs.FileInfo, data []byte) error {
	temp := tempPrefix + rand.Text() + tempSuffix
	mode := fs.FileMode(0o666) // less the umask
	if old != nil {
		mode = 0o600 // until the old mode is set
	}
	f, err := s.parent.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("creating a temporary file beside it: %w", reason(err))
	}
	s.temp = temp
	defer f.Close() // again, after an error
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("writing: %w", reason(err))
	}
	if old != nil {
		keepOwner(f, old) // before the mode, which a change of owner would cut
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return fmt.Errorf("keeping the mode: %w", reason(err))
		}
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("writing: %w", reason(err))
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing: %w", reason(err))
	}
	return nil
}

// chmod sets the permission bits of the new file.
func (s *stagedFile) chmod(mode fs.FileMode) error { return reason(s.parent.Chmod(s.temp, mode)) }

// commit gives the new content its name.
func (s *stagedFile) commit() error {
	if err := s.parent.Rename(s.temp, s.base); err != nil {
		return fmt.Errorf("putting it in place: %w", reason(err))
	}
	s.done = true
	if !s.shared {
		syncDir(s.parent)
	}
	return nil
}

// close removes what was not committed.
func (s *stagedFile) close() {
	if s.temp != "" && !s.done {
		_ = s.parent.Remove(s.temp)
	}
	if !s.shared {
		s.parent.Close()
	}
}

// syncDir makes the new name durable. Not every file system can; the content
// is in place either way.
func syncDir(parent *os.Root) {
	if d, err := parent.Open("."); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// removeFile removes the regular file at rel, which [workspace.resolve] gave.
func (w *workspace) removeFile(rel string) error {
	if err := w.protect(rel); err != nil {
		return err
	}
	root, err := w.open()
	if err != nil {
		return err
	}
	info, err := root.Lstat(rel)
	switch {
	case err != nil:
		return reason(err)
	case info.IsDir():
		return errIsDir
	case !info.Mode().IsRegular():
		return errKind
	}
	return reason(root.Remove(rel))
}
