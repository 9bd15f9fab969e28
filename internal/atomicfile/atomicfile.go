// Package atomicfile replaces files: readers see the old content or the new
// one, and a run that is killed leaves one of the two.
//
// New content is written beside the file, down to the disk, and then takes its
// name by a rename. Every access goes through the opened folder, so that a
// folder exchanged for a link meanwhile diverts nothing. Who may replace what,
// and the lock that keeps writers apart, are the caller's matter. The package
// imports no other of this module.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Options say what the new file is like. The zero value makes a file as
// [os.Create] does.
type Options struct {
	// Like is the file whose permission bits and owner the new one takes, as far
	// as we may give it away; nil: Mode counts.
	Like fs.FileInfo
	// Mode is the permission bits, whatever the umask; 0: 0666 less the umask.
	Mode fs.FileMode
	// Temp is the name of the file until it takes its own; "": one that [Sweep]
	// knows.
	Temp string
	// Volatile leaves out waiting for the disk: after a power failure neither
	// the old content nor the new one may be there.
	Volatile bool
}

// File is new content that has not taken its name yet.
type File struct {
	folder     *os.Root
	name, temp string
	volatile   bool
	committed  bool
}

// Write replaces or creates the file of that name in the folder. Errors name the
// step that failed and its cause, not the path, which the caller knows.
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

// Stage writes the new content beside the file and leaves the file as it is.
// The caller closes what it returns, and the folder not before.
func Stage(folder *os.Root, name string, data []byte, o Options) (*File, error) {
	f := &File{folder: folder, name: name, temp: o.Temp, volatile: o.Volatile}
	if f.temp == "" {
		f.temp = tempPrefix + rand.Text() + tempSuffix
	}
	mode := fs.FileMode(0o666)
	if o.Like != nil || o.Mode != 0 {
		mode = 0o600 // until it gets its own
	}
	out, err := folder.OpenFile(f.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, failure("creating a temporary file next to it", err)
	}
	if err = f.fill(out, data, o); err != nil {
		out.Close()
	} else if err = out.Close(); err != nil {
		err = failure("writing", err)
	}
	if err != nil {
		f.Close() // a full disk needs it gone
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
		copyOwner(out, o.Like) // before the mode, which a change of owner would cut
		mode = o.Like.Mode().Perm()
	}
	if mode != 0 || o.Like != nil {
		if err := out.Chmod(mode); err != nil {
			return failure("setting the mode", err)
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

// failure names a step and the cause of its error.
func failure(step string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	} else if l, ok := errors.AsType[*os.LinkError](err); ok {
		err = l.Err
	}
	return fmt.Errorf("%s: %w", step, err)
}

// Chmod sets the permission bits before the content takes its name.
func (f *File) Chmod(mode fs.FileMode) error {
	if err := f.folder.Chmod(f.temp, mode); err != nil {
		return failure("setting the mode", err)
	}
	return nil
}

// Commit gives the content its name. [SyncFolder] makes that durable.
func (f *File) Commit() error {
	if err := f.folder.Rename(f.temp, f.name); err != nil {
		return failure("putting it in place", err)
	}
	f.committed = true
	return nil
}

// Close removes what was not committed.
func (f *File) Close() {
	if !f.committed {
		_ = f.folder.Remove(f.temp) // Sweep tries again
	}
}

// SyncFolder makes the names in a folder durable. File systems that cannot sync
// a folder make no error.
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

// Sweep removes from a folder what a run left there that was killed more than a
// minute ago. What cannot be removed stays.
func Sweep(folder *os.Root) {
	dir, err := folder.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // those read before an error count
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
	return isOurs && hasEnd && len(random) == tempRandom && strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}
