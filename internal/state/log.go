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
)

// MaxLine is the longest line that Append takes, in bytes, newline included:
// what one write to the end of a file puts there in one piece.
const MaxLine = 4096

// Append adds one line to a log, as [Appender.Append] does.
func (d *Dir) Append(ctx context.Context, name string, line []byte) error {
	a := d.Appender(name)
	_, err := a.Append(ctx, line)
	return errors.Join(err, a.Close())
}

// Appender adds lines to a log and keeps it open in between, so that a line costs
// a look at the file and a write. It is safe for concurrent use, and any number of
// processes may append to one log. It opens nothing before the first line; the
// caller closes it.
type Appender struct {
	dir  *Dir
	name string

	mu   sync.Mutex
	file *os.File    // nil: to be opened
	info fs.FileInfo // of file, as it was opened
	end  int64       // where our last line ended
}

// Appender returns an Appender to a log.
func (d *Dir) Appender(name string) *Appender { return &Appender{dir: d, name: name} }

// Append adds one line and its newline behind it, without a lock: concurrent
// lines follow each other, never mix. What a full disk cut off before gets a line
// of its own, which one process sees to under a lock. A log that was set aside or
// removed since is opened anew. It returns the size of the log before, in bytes.
// Errors wrap [ErrUnavailable].
func (a *Appender) Append(ctx context.Context, line []byte) (size int64, err error) {
	if len(line)+1 > MaxLine || bytes.IndexByte(line, '\n') >= 0 {
		return 0, fmt.Errorf("%w: a log line must be one line of less than %d bytes", ErrUnavailable, MaxLine)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if size, err = a.reopen(); err != nil {
		return 0, failed(err)
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
	return size, failed(err)
}

// staysOpen is false where a file that one process has open cannot be renamed by
// another, which setting a log aside does.
const staysOpen = runtime.GOOS != "windows"

// reopen makes sure that file is what the name stands for, and returns its size.
func (a *Appender) reopen() (int64, error) {
	if a.file != nil {
		named, err := os.Lstat(filepath.Join(a.dir.Path, a.name))
		if err == nil && os.SameFile(named, a.info) {
			return named.Size(), nil
		}
		_ = a.close() // what was written is written
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
	a.end = 0 // an end that is not ours is looked at
	return a.info.Size(), nil
}

// Close closes the log. It may be used again.
func (a *Appender) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return failed(a.close())
}

func (a *Appender) close() error {
	if a.file == nil {
		return nil
	}
	f := a.file
	a.file = nil
	return f.Close()
}

// openLog opens the log for appending and makes it if need be.
func openLog(root *os.Root, name string) (*os.File, error) {
	f, err := openFile(root, name, os.O_RDWR|os.O_APPEND)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	f, err = root.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// tornEnd reports whether a log of that size does not end with a newline: a line
// was cut off, or another run is in the middle of writing one.
func tornEnd(f *os.File, size int64) bool {
	if size == 0 {
		return false
	}
	last := make([]byte, 1)
	n, _ := f.ReadAt(last, size-1)
	return n == 1 && last[0] != '\n'
}

// endTorn ends a line that was cut off. One that another run is in the middle of
// writing, without the lock, grows or is whole when looked at again.
func (a *Appender) endTorn(ctx context.Context) error {
	return a.dir.locked(ctx, a.name, func(*os.Root) error {
		for before := int64(-1); ; {
			info, err := a.file.Stat()
			if err != nil || !tornEnd(a.file, info.Size()) {
				return failed(err)
			}
			if info.Size() == before {
				_, err = a.file.Write([]byte{'\n'})
				return failed(err)
			}
			before = info.Size()
			time.Sleep(writing)
		}
	})
}

// writing is more than a run needs to write one line.
const writing = 5 * time.Millisecond

// Rotate renames a log of at least size bytes to name.1, name.1 to name.2 and
// so on; name.<keep> is the last to stay. It does nothing to a smaller or
// absent log. Errors are those of [Dir.Update].
func (d *Dir) Rotate(ctx context.Context, name string, size int64, keep int) error {
	if err := checkName(name); err != nil {
		return err
	}
	if !d.due(name, size) {
		return nil // the usual case needs no lock
	}
	return d.locked(ctx, name, func(root *os.Root) error {
		info, err := root.Lstat(name)
		if err != nil || info.Size() < size {
			return nil // another run was faster
		}
		for i := max(keep, 1); i > 0; i-- {
			from := name
			if i > 1 {
				from = fmt.Sprintf("%s.%d", name, i-1)
			}
			err := root.Rename(from, fmt.Sprintf("%s.%d", name, i))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return failed(err)
			}
		}
		return nil
	})
}

func (d *Dir) due(name string, size int64) bool {
	root, err := d.open(false)
	if err != nil {
		return false
	}
	defer root.Close()
	info, err := root.Lstat(name)
	return err == nil && info.Size() >= size
}
