package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/atomicfile"
)

// MaxLine is the maximum length of a line for Append, in bytes, including the
// newline: a single write appends that much atomically.
const MaxLine = 4096

// Append adds one line to a log, as [Appender.Append] does.
func (d *Dir) Append(ctx context.Context, name string, line []byte) error {
	a := d.Appender(name)
	_, err := a.Append(ctx, line)
	return errors.Join(err, a.Close())
}

// Appender appends lines to a log and keeps it open, so that a line costs one
// stat and one write. It is safe for concurrent use, and any number of
// processes may append to one log. It opens nothing before the first line; the
// caller closes it.
type Appender struct {
	dir  *Dir
	name string

	mu   sync.Mutex
	file *os.File    // nil until it is opened
	info fs.FileInfo // of file when it was opened
	end  int64       // end of our last line
}

// Appender returns an Appender to a log.
func (d *Dir) Appender(name string) *Appender { return &Appender{dir: d, name: name} }

// Append appends one line and a newline without a lock: concurrent lines are never mixed.
// If a full disk truncated the last line, Append first ends it with a newline, while
// holding a lock. If the log was rotated or removed, Append opens it again. It returns
// the size of the log before, in bytes. Errors wrap [ErrUnavailable].
func (a *Appender) Append(ctx context.Context, line []byte) (size int64, err error) {
	if len(line)+1 > MaxLine || bytes.IndexByte(line, '\n') >= 0 {
		return 0, fmt.Errorf("%w: a log line must be one line of less than %d bytes", ErrUnavailable, MaxLine)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if size, err = a.reopen(); err != nil {
		return 0, storeError(err)
	}
	if size != a.end && tornEnd(a.file, size) {
		if err := a.endTorn(ctx); err != nil {
			return 0, err
		}
	}
	n, err := a.file.Write(append(bytes.Clone(line), '\n'))
	a.end = size + int64(n)
	if err != nil || !staysOpen {
		a.end = 0
		err = errors.Join(err, a.close())
	}
	return size, storeError(err)
}

// staysOpen reports whether a log may stay open between lines. On Windows an open file
// cannot be renamed by another process, which rotation requires.
const staysOpen = runtime.GOOS != "windows"

// reopen opens the file if the name no longer refers to the open one, and
// returns its size.
func (a *Appender) reopen() (int64, error) {
	if a.file != nil {
		named, err := os.Lstat(filepath.Join(a.dir.Path, a.name))
		if err == nil && os.SameFile(named, a.info) {
			return named.Size(), nil
		}
		_ = a.close() // completed writes are not affected
	}
	if err := checkName(a.name); err != nil {
		return 0, err
	}
	root, err := a.dir.open(true)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	if a.file, err = openLog(root, a.name); err != nil {
		return 0, err
	}
	if a.info, err = a.file.Stat(); err != nil {
		return 0, errors.Join(err, a.close())
	}
	a.end = 0 // the end of another run's line has to be checked
	return a.info.Size(), nil
}

// Close closes the log. It may be used again.
func (a *Appender) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return storeError(a.close())
}

func (a *Appender) close() error {
	if a.file == nil {
		return nil
	}
	f := a.file
	a.file = nil
	return f.Close()
}

func openLog(root *os.Root, name string) (*os.File, error) {
	f, err := openFile(root, name, os.O_RDWR|os.O_APPEND)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	return createFile(root, name, os.O_RDWR|os.O_APPEND)
}

// tornEnd reports whether a log of that size does not end with a newline:
// either a line was truncated, or another run is writing one.
func tornEnd(f *os.File, size int64) bool {
	if size == 0 {
		return false
	}
	last := make([]byte, 1)
	n, _ := f.ReadAt(last, size-1)
	return n == 1 && last[0] != '\n'
}

// endTorn ends a truncated line. If another run is writing the line, without
// the lock, the file has grown or is complete at the second check.
func (a *Appender) endTorn(ctx context.Context) error {
	return a.dir.locked(ctx, a.name, func(*os.Root) error {
		for before := int64(-1); ; {
			info, err := a.file.Stat()
			if err != nil || !tornEnd(a.file, info.Size()) {
				return storeError(err)
			}
			if info.Size() == before {
				_, err = a.file.Write([]byte{'\n'})
				return storeError(err)
			}
			before = info.Size()
			time.Sleep(writing)
		}
	})
}

// writing is more time than a run needs to write one line.
const writing = 5 * time.Millisecond

// Rotate renames a log of at least size bytes to name.1, name.1 to name.2 and
// so on; name.<keep> is the last one kept. It does nothing for a smaller or
// absent log. Errors are those of [Dir.Update].
func (d *Dir) Rotate(ctx context.Context, name string, size int64, keep int) error {
	if err := checkName(name); err != nil {
		return err
	}
	if !d.needsRotation(name, size) {
		return nil // the usual case needs no lock
	}
	return d.locked(ctx, name, func(root *os.Root) error { return rotate(root, name, size, keep) })
}

// rotate rotates while the lock is held.
func rotate(root *os.Root, name string, size int64, keep int) error {
	info, err := root.Lstat(name)
	if err != nil || info.Size() < size {
		return nil // another run rotated it first
	}
	for i := max(keep, 1); i > 0; i-- {
		from := name
		if i > 1 {
			from = fmt.Sprintf("%s.%d", name, i-1)
		}
		err := atomicfile.Rename(root, from, fmt.Sprintf("%s.%d", name, i))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return storeError(err)
		}
	}
	return nil
}

func (d *Dir) needsRotation(name string, size int64) bool {
	root, err := d.open(false)
	if err != nil {
		return false
	}
	defer root.Close()
	info, err := root.Lstat(name)
	return err == nil && info.Size() >= size
}
