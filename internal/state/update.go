package state

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// Update replaces a file by what change makes of it, under a lock: no other
// Update, SetAside or Rotate of that name, in whatever process, comes between.
// old is nil when the file is absent; a nil result or one equal to old leaves
// all as it is. The new content is on disk when Update returns.
//
// An error of change is returned as it is, and nothing is written. The cause of
// ctx ends the wait for the lock. Every other error wraps [ErrUnavailable].
func (d *Dir) Update(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	return d.locked(ctx, name, func(root *os.Root) error {
		old, err := readFile(root, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unavailable(err)
		}
		next, err := change(old)
		if err != nil {
			return err
		}
		if next == nil || old != nil && bytes.Equal(old, next) {
			return nil
		}
		return mustWork(replace(root, name, next, true))
	})
}

// SetAside moves a damaged file out of the way and returns the new path,
// name.bad or the first of name.bad.1, name.bad.2, … that is free. An absent
// file is an error that wraps [fs.ErrNotExist].
func (d *Dir) SetAside(ctx context.Context, name string) (to string, err error) {
	err = d.locked(ctx, name, func(root *os.Root) error {
		if _, err := root.Lstat(name); err != nil {
			return unavailable(err)
		}
		free, err := freeName(root, name+".bad")
		if err != nil {
			return mustWork(err)
		}
		to = filepath.Join(d.Path, free)
		return mustWork(errors.Join(root.Rename(name, free), syncDir(root)))
	})
	if err != nil {
		return "", err
	}
	return to, nil
}

// maxAside bounds the search for a free name.
const maxAside = 1000

func freeName(root *os.Root, base string) (string, error) {
	name := base
	for i := 1; i <= maxAside; i++ {
		if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s.%d", base, i)
	}
	return "", fmt.Errorf("%s and %d more damaged files are there; remove some", filepath.Join(root.Name(), base), maxAside)
}

// locked runs do while holding the lock of name.
func (d *Dir) locked(ctx context.Context, name string, do func(*os.Root) error) error {
	if err := checkName(name); err != nil {
		return err
	}
	root, err := d.open(true)
	if err != nil {
		return mustWork(err)
	}
	defer root.Close()
	if err := prepareLock(root, name+lockSuffix); err != nil {
		return mustWork(err)
	}
	unlock, err := d.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	removeTemps(root, name)
	return do(root)
}

// lock takes the lock of name, which is a file of its own because the file
// itself is replaced. The system frees it when its holder dies.
func (d *Dir) lock(ctx context.Context, name string) (unlock func(), err error) {
	wait := d.Wait
	if wait == 0 {
		wait = DefaultWait
	}
	late := fmt.Errorf("%w: another toolreg holds %s for more than %v", ErrUnavailable, d.lockPath(name), wait)
	ctx, cancel := context.WithTimeoutCause(ctx, wait, late)
	defer cancel()

	f := flock.New(d.lockPath(name), flock.SetPermissions(0o600))
	result := make(chan error, 1)
	go func() { result <- f.Lock() }()
	select {
	case err := <-result:
		if err != nil {
			return nil, mustWork(fmt.Errorf("locking %s: %w", d.lockPath(name), err))
		}
		return func() { _ = f.Close() }, nil
	case <-ctx.Done():
		// A blocking lock is fair where polling is not, but cannot be taken
		// back: give it up when it comes.
		go func() {
			<-result
			_ = f.Close()
		}()
		return nil, context.Cause(ctx)
	}
}

// lockSuffix names the file that is locked in place of another.
const lockSuffix = ".lock"

func (d *Dir) lockPath(name string) string { return filepath.Join(d.Path, name+lockSuffix) }

// prepareLock makes the lock file, so that no umask can make one that nobody
// opens again, and refuses what could not be locked (a pipe, a link).
func prepareLock(root *os.Root, name string) error {
	f, err := openFile(root, name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = root.OpenFile(name, os.O_CREATE|os.O_RDONLY, 0o600)
		if err == nil {
			err = f.Chmod(0o600)
		}
	}
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}

func readFile(root *os.Root, name string) ([]byte, error) {
	f, err := openFile(root, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

// tempInfix marks the files that become others by a rename.
const tempInfix = ".tmp-"

// replace writes a file beside name and renames it: the rename is the commit.
// With durable set it returns when both are on disk.
func replace(root *os.Root, name string, data []byte, durable bool) error {
	temp := name + tempInfix + rand.Text()
	if err := writeFile(root, temp, data, durable); err != nil {
		_ = root.Remove(temp) // a full disk needs it gone
		return err
	}
	if err := root.Rename(temp, name); err != nil {
		_ = root.Remove(temp)
		return err
	}
	if !durable {
		return nil
	}
	return syncDir(root)
}

func writeFile(root *os.Root, name string, data []byte, durable bool) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o600))
	if durable {
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}

// removeTemps removes what killed runs left of name. The lock is held, so that
// nobody is writing one.
func removeTemps(root *os.Root, name string) {
	dir, err := root.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, n := range names {
		if strings.HasPrefix(n, name+tempInfix) {
			_ = root.Remove(n) // the next run tries again
		}
	}
}

// mustWork wraps the error of a step that has no ordinary way to fail.
func mustWork(err error) error {
	if err == nil || errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
