package state

import (
	"bytes"
	"cmp"
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

// Update replaces a file by the result of change while holding a lock that
// excludes every other Update or Rotate of that name in any process. old is nil
// if the file is absent; a result that is nil or equal to old changes nothing.
// When Update returns, the new content is on disk.
//
// An error of change is returned unchanged, and nothing is written. If ctx ends
// while waiting for the lock, its cause is returned. Every other error wraps
// [ErrUnavailable].
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

// ErrDamaged is returned by the function passed to [Dir.UpdateOrSetAside] if
// the content cannot be read.
var ErrDamaged = errors.New("the file is damaged")

// UpdateOrSetAside is [Dir.Update] for a file that may be damaged. If change
// returns an error that wraps [ErrDamaged], it is called again as for an absent
// file; the damaged file is renamed, and aside is its new path. All this
// happens while holding the lock, so that the renamed file is the one that
// change has seen.
func (d *Dir) UpdateOrSetAside(ctx context.Context, name string,
	change func(old []byte) ([]byte, error)) (aside string, err error) {
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

// commit writes the new content if it changed.
func commit(root *os.Root, name string, old, next []byte) error {
	if next == nil || old != nil && bytes.Equal(old, next) {
		return nil
	}
	return storeError(replace(root, name, next, true))
}

// setAside renames a damaged file to a name derived from its content, so that identical
// damage is stored only once.
func setAside(root *os.Root, name string, content []byte) (string, error) {
	sum := sha256.Sum256(content)
	to := name + ".bad-" + hex.EncodeToString(sum[:4])
	if err := errors.Join(atomicfile.Rename(root, name, to), atomicfile.SyncFolder(root)); err != nil {
		return "", storeError(err)
	}
	return filepath.Join(root.Name(), to), nil
}

// locked calls do while holding the lock of name.
func (d *Dir) locked(ctx context.Context, name string, do func(*os.Root) error) error {
	root, unlock, err := d.lock(ctx, name)
	if root != nil {
		defer root.Close()
	}
	if err != nil {
		return err
	}
	defer unlock()
	removeTemps(root, name)
	return do(root)
}

// Lock takes the lock of name, as Update does, until unlock is called. Its errors are those
// of Update.
func (d *Dir) Lock(ctx context.Context, name string) (unlock func(), err error) {
	root, unlock, err := d.lock(ctx, name)
	if root != nil {
		_ = root.Close() // nothing was written
	}
	return unlock, err
}

// lock opens the folder and takes the lock of name, which is a separate file because the file
// itself is replaced. The system releases it when its holder dies. The folder may be open even
// if there is an error.
func (d *Dir) lock(ctx context.Context, name string) (_ *os.Root, unlock func(), err error) {
	if err := checkName(name); err != nil {
		return nil, nil, err
	}
	wait := cmp.Or(d.Wait, DefaultWait)
	late := fmt.Errorf("%w: the lock on %s was not free within %v", ErrUnavailable, d.lockPath(name), wait)
	ctx, cancel := context.WithTimeoutCause(ctx, wait, late)
	defer cancel()
	// Waiting for the system's lock takes a thread, so one goroutine of this process does.
	turn := d.turn(name)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	root, err := d.open(true)
	if err == nil {
		err = prepareLock(root, name+lockSuffix)
	}
	f := flock.New(d.lockPath(name), flock.SetPermissions(0o600))
	end := func() { _ = f.Close(); <-turn }
	if err != nil {
		end()
		return root, nil, storeError(err)
	}
	result := make(chan error, 1)
	go func() { result <- f.Lock() }()
	select {
	case err := <-result:
		if err != nil {
			end()
			return root, nil, storeError(fmt.Errorf("locking %s: %w", d.lockPath(name), err))
		}
		return root, end, nil
	case <-ctx.Done():
		// A blocking lock is fair, unlike polling, but cannot be canceled:
		// release it when it is acquired.
		go func() {
			<-result
			end()
		}()
		return root, nil, context.Cause(ctx)
	}
}

// turn returns the channel that has room for one goroutine which has or waits for the lock of
// name.
func (d *Dir) turn(name string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turns == nil {
		d.turns = map[string]chan struct{}{}
	}
	if d.turns[name] == nil {
		d.turns[name] = make(chan struct{}, 1)
	}
	return d.turns[name]
}

const lockSuffix = ".lock"

func (d *Dir) lockPath(name string) string { return filepath.Join(d.Path, name+lockSuffix) }

// prepareLock creates the lock file with a mode that does not depend on the
// umask, so that it can be opened again, and refuses what cannot be locked (a
// pipe, a link).
func prepareLock(root *os.Root, name string) error {
	f, err := openFile(root, name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = createFile(root, name, os.O_RDONLY)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// readFile returns the content of a file; nil if it is absent.
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

// tempInfix is part of the names of temporary files that are renamed.
const tempInfix = ".tmp-"

// replace replaces a file. If durable is set, it returns when the content is on
// disk.
func replace(root *os.Root, name string, data []byte, durable bool) error {
	return atomicfile.Write(root, name, data,
		atomicfile.Options{Mode: 0o600, Temp: name + tempInfix + rand.Text(), Volatile: !durable})
}

// removeTemps removes temporary files that killed runs left. The caller holds the lock,
// so no other run is writing one.
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

// storeError wraps the error of a step that does not normally fail.
func storeError(err error) error {
	if err == nil || errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

const (
	keyFile = "key"
	keySize = 32 // bytes
)

// Key returns the random key of this folder, and creates it first if there is none. It
// is for hashes of values that may be secret: without the key, nobody can find a value
// by trying.
func (d *Dir) Key(ctx context.Context) ([]byte, error) {
	if key, err := d.Read(keyFile); err == nil && len(key) == keySize {
		return key, nil
	}
	var key []byte
	err := d.Update(ctx, keyFile, func(old []byte) ([]byte, error) {
		if key = old; len(key) == keySize {
			return nil, nil
		}
		key = make([]byte, keySize)
		_, err := rand.Read(key)
		return key, err
	})
	return key, err
}
