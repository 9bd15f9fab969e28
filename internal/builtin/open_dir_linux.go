package builtin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// openDir is an open folder, for searches. What is opened in it is named by a
// single name that the folder itself gave, and no link is followed, so that a
// search stays as surely in the workspace as with an [os.Root]. That costs two
// thirds more system calls: half the time of a search.
type openDir struct{ fd int }

// openDirIn opens the folder at rel.
func openDirIn(root *os.Root, rel string) (*openDir, error) {
	f, err := root.OpenFile(rel, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, failed := -1, error(nil)
	err = conn.Control(func(from uintptr) {
		fd, failed = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	return &openDir{fd}, nil
}

// again repeats a call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (d *openDir) openat(name string, flags int) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
		return err
	})
	return fd, err
}

// dir opens a folder in the folder.
func (d *openDir) dir(name string) (*openDir, error) {
	fd, err := d.openat(name, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &openDir{fd}, nil
}

// file opens a regular file in the folder; errKind tells of anything else.
func (d *openDir) file(name string) (*openFile, error) {
	fd, err := d.openat(name, unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = again(func() error { return unix.Fstat(fd, &st) }); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errKind
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &openFile{fd: fd, size: st.Size, changed: time.Unix(st.Mtim.Unix())}, nil
}

// changed tells when an entry was changed, the zero time where that is unknown.
func (d *openDir) changed(name string) time.Time {
	st, err := d.stat(name)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(st.Mtim.Unix())
}

func (d *openDir) stat(name string) (st unix.Stat_t, err error) {
	err = again(func() error { return unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}

func (d *openDir) Close() error { return unix.Close(d.fd) }

// entries returns the entries of the folder in no order, using buf meanwhile.
// What was read before an error counts.
func (d *openDir) entries(buf []byte) ([]dirent, error) {
	var out []dirent
	for {
		n := 0
		err := again(func() (err error) {
			n, err = unix.Getdents(d.fd, buf)
			return err
		})
		if err != nil || n <= 0 {
			return out, err
		}
		out = d.appendDirents(out, buf[:n])
	}
}

// appendDirents reads records of struct linux_dirent64: inode and offset of 8
// bytes each, length of 2, type of 1, then the name up to a NUL byte.
func (d *openDir) appendDirents(out []dirent, buf []byte) []dirent {
	const nameAt = 19
	text := string(buf) // one copy that all names are parts of
	const usual = 40    // bytes of a record
	out = slices.Grow(out, len(buf)/usual)
	for at := 0; at+nameAt <= len(buf); {
		length := int(binary.NativeEndian.Uint16(buf[at+16:]))
		if length < nameAt || at+length > len(buf) {
			break
		}
		end := at + length
		if i := bytes.IndexByte(buf[at+nameAt:end], 0); i >= 0 {
			end = at + nameAt + i
		}
		name := text[at+nameAt : end]
		if name != "" && name != "." && name != ".." && bytes.IndexByte(buf[at+nameAt:end], '/') < 0 {
			out = append(out, dirent{name: name, kind: d.kind(name, buf[at+18])})
		}
		at += length
	}
	return out
}

func (d *openDir) kind(name string, kind byte) fs.FileMode {
	if kind == unix.DT_UNKNOWN { // some file systems keep no types in their folders
		if st, err := d.stat(name); err == nil {
			kind = byte(st.Mode >> 12)
		}
	}
	switch kind {
	case unix.DT_REG:
		return 0
	case unix.DT_DIR:
		return fs.ModeDir
	case unix.DT_LNK:
		return fs.ModeSymlink
	case unix.DT_FIFO:
		return fs.ModeNamedPipe
	case unix.DT_SOCK:
		return fs.ModeSocket
	case unix.DT_CHR, unix.DT_BLK:
		return fs.ModeDevice
	}
	return fs.ModeIrregular
}

// openFile is a regular file open for reading.
type openFile struct {
	fd      int
	size    int64
	changed time.Time
}

// Read implements io.Reader.
func (f *openFile) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	err = again(func() (err error) {
		n, err = unix.Read(f.fd, p)
		return err
	})
	return ended(n, err)
}

// ended makes what io.Reader wants of what the kernel says.
func ended(n int, err error) (int, error) {
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// ReadAt implements io.ReaderAt.
func (f *openFile) ReadAt(p []byte, off int64) (done int, err error) {
	for done < len(p) {
		n := 0
		err := again(func() (err error) {
			n, err = unix.Pread(f.fd, p[done:], off+int64(done))
			return err
		})
		if n, err = ended(n, err); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// Seek implements io.Seeker.
func (f *openFile) Seek(offset int64, whence int) (int64, error) {
	return unix.Seek(f.fd, offset, whence)
}

func (f *openFile) Close() error { return unix.Close(f.fd) }
