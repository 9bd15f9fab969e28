// Package atomicfile replaces files atomically: readers see either the old or the new
// content, even after a run was killed.
//
// New content is written to a temporary file in the same folder, synced to disk
// and renamed. Every access goes through the opened folder, so that replacing
// the folder by a link has no effect. Permission checks and locking are up to
// the caller. The package imports no other package of this module.
//
// A file that cannot be replaced, because it is mounted by itself or its folder takes no
// other file, is written in place if it can be.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/text"
)

// Options describe the new file. The zero value creates a file as [os.Create]
// does.
type Options struct {
	// Like is the file that is replaced: its permission bits, access control list,
	// extended attributes and, if possible, owner are kept. If it is nil, Mode is used.
	Like fs.FileInfo
	// Mode is the permission bits, regardless of the umask. Zero means 0666 minus
	// the umask.
	Mode fs.FileMode
	// Temp is the name of the temporary file; "" means one that [Sweep] recognizes.
	Temp string
	// Volatile skips syncing to disk: after a power failure, both the old and
	// the new content may be lost.
	Volatile bool
}

// File is new content that does not have its name yet.
type File struct {
	folder     *os.Root
	name, temp string
	data       []byte      // the content if there is no temporary file: temp is ""
	mode       fs.FileMode // to be set if the file is written in place
	committed  bool
}

// Write replaces or creates the file with a name in the folder. Errors name the
// step that failed and its cause, but not the path, which the caller knows.
func Write(folder *os.Root, name string, data []byte, o Options) error {
	f, err := Stage(folder, name, data, o)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Commit(); err != nil {
		return err
	}
	if !o.Volatile {
		return SyncFolder(folder)
	}
	return nil
}

// Stage writes the new content to a temporary file and does not change the file
// itself. The caller must close the result before the folder, and must not change data until then.
func Stage(folder *os.Root, name string, data []byte, o Options) (*File, error) {
	f := &File{folder: folder, name: name, temp: o.Temp}
	if o.Like == nil {
		f.mode = o.Mode
	}
	if f.temp == "" {
		f.temp = tempPrefix + rand.Text() + tempSuffix
	}
	mode := fs.FileMode(0o666)
	if o.Like != nil || o.Mode != 0 {
		mode = 0o600 // until the final mode is set
	}
	out, err := folder.OpenFile(f.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		if target, openErr := f.open(); isRefused(err) && openErr == nil {
			f.temp, f.data = "", data
			return f, target.Close()
		}
		return nil, failure("creating a temporary file next to it", err)
	}
	if err = f.fill(out, data, o); err != nil {
		out.Close()
	} else if err = out.Close(); err != nil {
		err = failure("writing", err)
	}
	if err != nil {
		f.Close() // free the space on a full disk
		return nil, err
	}
	return f, nil
}

func (f *File) fill(out *os.File, data []byte, o Options) error {
	if _, err := out.Write(data); err != nil {
		return failure("writing", err)
	}
	mode := o.Mode
	if o.Like != nil {
		mode = o.Like.Mode().Perm()
		if !copyOwner(out, o.Like) { // before the mode, because changing the owner would clear bits
			mode &^= 0o070 &^ (mode << 3) // another group gets no more than everyone
		}
	}
	if mode != 0 || o.Like != nil {
		if err := out.Chmod(mode); err != nil {
			return failure("setting the mode", err)
		}
	}
	if o.Like != nil {
		if err := copyAttributes(out, f.folder, f.name); err != nil {
			return failure("copying the access control list", err)
		}
	}
	if o.Volatile {
		return nil
	}
	if err := out.Sync(); err != nil {
		return failure("writing", err)
	}
	return nil
}

// failure returns an error that names a step and the cause.
func failure(step string, err error) error {
	return fmt.Errorf("%s: %w", step, text.Cause(err))
}

// Chmod sets the permission bits that the file will have.
func (f *File) Chmod(mode fs.FileMode) error {
	f.mode = mode
	if f.temp == "" {
		return nil
	}
	if err := f.folder.Chmod(f.temp, mode); err != nil {
		return failure("setting the mode", err)
	}
	return nil
}

// Commit renames the temporary file. [SyncFolder] makes that durable.
func (f *File) Commit() error {
	if f.temp == "" {
		target, err := f.open()
		if err != nil {
			return failure("writing", err)
		}
		return f.overwrite(target, f.data)
	}
	err := Rename(f.folder, f.temp, f.name)
	if err == nil {
		f.committed = true
		return nil
	}
	if isRefused(err) {
		if target, openErr := f.open(); openErr == nil {
			data, err := f.folder.ReadFile(f.temp)
			if err != nil {
				return errors.Join(failure("reading the temporary file", err), target.Close())
			}
			return f.overwrite(target, data)
		}
	}
	return failure("renaming the temporary file", err)
}

// overwrite writes data in place and closes the file. If that fails, as on a full disk, it
// writes the old content again.
func (f *File) overwrite(target *os.File, data []byte) error {
	if f.mode != 0 { // first, because others must not read what is written
		if err := target.Chmod(f.mode); err != nil {
			return errors.Join(failure("setting the mode", err), target.Close())
		}
	}
	old, err := io.ReadAll(target)
	if err == nil {
		if err = fillAgain(target, data); err != nil {
			err = errors.Join(err, fillAgain(target, old))
		}
	}
	if err = errors.Join(err, target.Close()); err != nil {
		return failure("writing", err)
	}
	return nil
}

func fillAgain(target *os.File, data []byte) error {
	_, err := target.WriteAt(data, 0)
	return errors.Join(err, target.Truncate(int64(len(data))), target.Sync())
}

// Close removes the temporary file unless it was committed.
func (f *File) Close() {
	if f.temp != "" && !f.committed {
		_ = f.folder.Remove(f.temp) // Sweep tries again
	}
}

// SyncFolder makes the names in a folder durable. It succeeds on file systems
// that do not support it.
func SyncFolder(folder *os.Root) error {
	dir, err := folder.Open(".")
	if err != nil {
		return err
	}
	err = dir.Sync()
	if isUnsupported(err) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}

const (
	tempPrefix = ".toolreg-"
	tempSuffix = ".tmp"
	tempRandom = 26 // characters of rand.Text
	tempStale  = time.Minute
)

// Sweep removes temporary files of runs that were killed more than a minute
// ago. It ignores files that cannot be removed.
func Sweep(folder *os.Root) {
	dir, err := folder.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // on an error, use the names read so far
	for _, name := range names {
		if !isTemp(name) {
			continue
		}
		info, err := folder.Lstat(name)
		if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > tempStale {
			_ = folder.Remove(name)
		}
	}
}

func isTemp(name string) bool {
	random, isOurs := strings.CutPrefix(name, tempPrefix)
	random, hasEnd := strings.CutSuffix(random, tempSuffix)
	return isOurs && hasEnd && len(random) == tempRandom &&
		strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}
