package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// MaxLine is the longest line that Append takes, in bytes, newline included:
// what one write to the end of a file puts there in one piece.
const MaxLine = 4096

// Append adds one line to a log and its newline behind it, without a lock:
// concurrent lines follow each other, never mix. What a full disk cut off before
// gets a line of its own; for that an empty line may come between two others,
// which readers skip. Errors wrap [ErrUnavailable].
func (d *Dir) Append(name string, line []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	if len(line)+1 > MaxLine || bytes.IndexByte(line, '\n') >= 0 {
		return fmt.Errorf("%w: a log line must be one line of less than %d bytes", ErrUnavailable, MaxLine)
	}
	root, err := d.open(true)
	if err != nil {
		return mustWork(err)
	}
	defer root.Close()
	f, err := openLog(root, name)
	if err != nil {
		return mustWork(err)
	}
	record := append(bytes.Clone(line), '\n')
	if tornEnd(f) {
		record = append([]byte{'\n'}, record...)
	}
	_, err = f.Write(record)
	return mustWork(errors.Join(err, f.Close()))
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

// tornEnd reports whether the log does not end with a newline: a line was cut
// off, or another run is in the middle of writing one.
func tornEnd(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := make([]byte, 1)
	n, _ := f.ReadAt(last, info.Size()-1)
	return n == 1 && last[0] != '\n'
}

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
				return mustWork(err)
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
