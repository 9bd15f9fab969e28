package state

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/toolreg/toolreg/internal/atomicfile"
)

// Update replaces a file by what change makes of it, under a lock: no other
// Update or Rotate of that name, in whatever process, comes between. old is nil
// when the file is absent; a nil result or one equal to old leaves all as it is.
// The new content is on disk when Update returns.
//
// An error of change is returned as it is, and nothing is written. The cause of
// ctx ends the wait for the lock. Every other error wraps [ErrUnavailable].
func (d *Dir) Update(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	return d.locked(ctx, name, func(root *os.Root) error {
		old, err := readFile(root, name)
		if err != nil {
			return err
		}
		next, err := change(old)
		if err != nil {
			return err
		}
		return commit(root, name, old, next)
	})
}

// ErrDamaged is what the function that [Dir.UpdateOrSetAside] calls returns for
// content that cannot be read.
var ErrDamaged = errors.New("the file is damaged")

// UpdateOrSetAside is [Dir.Update] for a file that may be damaged. Where change
// returns an error that wraps [ErrDamaged], it is called again as for an absent
// file; then the damaged one gets a name of its own and aside is its new path.
// All happens under one lock, so that the file that is set aside is the one that
// change has seen.
func (d *Dir) UpdateOrSetAside(ctx context.Context, name string, change func(old []byte) ([]byte, error)) (aside string, err error) {
	err = d.locked(ctx, name, func(root *os.Root) error {
		old, err := readFile(root, name)
		if err != nil {
			return err
		}
		next, err := change(old)
		if errors.Is(err, ErrDamaged) {
			if next, err = change(nil); err == nil {
				aside, err = setAside(root, name, old)
			}
			old = nil
		}
		if err != nil {
			return err
		}
		return commit(root, name, old, next)
	})
	return aside, err
}

// commit writes what became of a file, if it did.
func commit(root *os.Root, name string, old, next []byte) error {
	if next == nil || old != nil && bytes.Equal(old, next) {
		return nil
	}
	return failed(replace(root, name, next, true))
}

// setAside renames a damaged file to one that tells by its name what it holds:
// the same damage is kept once.
func setAside(root *os.Root, name string, content []byte) (string, error) {
	sum := sha256.Sum256(content)
	to := name + ".bad-" + hex.EncodeToString(sum[:4])
	if err := errors.Join(root.Rename(name, to), atomicfile.SyncFolder(root)); err != nil {
		return "", failed(err)
	}
	return filepath.Join(root.Name(), to), nil
}

// locked runs do while holding the lock of name.
func (d *Dir) locked(ctx context.Context, name string, do func(*os.Root) error) error {
	if err := checkName(name); err != nil {
		return err
	}
	root, err := d.open(true)
	if err != nil {
		return failed(err)
	}
	defer root.Close()
	if err := prepareLock(root, name+lockSuffix); err != nil {
		return failed(err)
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
			return nil, failed(fmt.Errorf("locking %s: %w", d.lockPath(name), err))
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

// readFile returns the content of a file, nil of an absent one.
func readFile(root *os.Root, name string) ([]byte, error) {
	f, err := openFile(root, name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	defer f.Close()
	data, err := readAll(f)
	return data, unavailable(err)
}

// tempInfix marks the files that become others by a rename.
const tempInfix = ".tmp-"

// replace puts data in the place of a file. With durable set it returns when that
// is on disk.
func replace(root *os.Root, name string, data []byte, durable bool) error {
	return atomicfile.Write(root, name, data, atomicfile.Options{Mode: 0o600, Temp: name + tempInfix + rand.Text(), Volatile: !durable})
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

// failed wraps the error of a step that has no ordinary way to fail.
func failed(err error) error {
	if err == nil || errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
