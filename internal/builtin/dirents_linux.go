package builtin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// readDir returns the entries of a folder in no order. What was read before
// an error counts.
//
// It asks the kernel itself: for a folder within an os.Root, File.ReadDir
// looks at every entry once more, which is a fifth of the time of a search.
func readDir(root *os.Root) ([]dirent, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var out []dirent
	buf := make([]byte, 32<<10)
	for {
		var n int
		var failed error
		err := conn.Control(func(fd uintptr) {
			for {
				if n, failed = syscall.ReadDirent(int(fd), buf); !errors.Is(failed, syscall.EINTR) {
					return
				}
			}
		})
		if err = errors.Join(err, failed); err != nil || n <= 0 {
			return out, err
		}
		out = appendDirents(out, root, buf[:n])
	}
}

// appendDirents reads records of struct linux_dirent64: inode and offset of 8
// bytes each, length of 2, type of 1, then the name up to a NUL byte.
func appendDirents(out []dirent, root *os.Root, buf []byte) []dirent {
	const nameAt = 19
	for len(buf) >= nameAt {
		length := int(binary.NativeEndian.Uint16(buf[16:]))
		if length < nameAt || length > len(buf) {
			break
		}
		name := buf[nameAt:length]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		if s := string(name); s != "." && s != ".." && s != "" {
			out = append(out, dirent{name: s, kind: direntKind(root, s, buf[18])})
		}
		buf = buf[length:]
	}
	return out
}

func direntKind(root *os.Root, name string, kind byte) fs.FileMode {
	switch kind {
	case syscall.DT_REG:
		return 0
	case syscall.DT_DIR:
		return fs.ModeDir
	case syscall.DT_LNK:
		return fs.ModeSymlink
	case syscall.DT_FIFO:
		return fs.ModeNamedPipe
	case syscall.DT_SOCK:
		return fs.ModeSocket
	case syscall.DT_CHR, syscall.DT_BLK:
		return fs.ModeDevice
	}
	// Some file systems keep no types in their folders.
	if info, err := root.Lstat(name); err == nil {
		return info.Mode().Type()
	}
	return fs.ModeIrregular
}
