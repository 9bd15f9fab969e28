package git

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
)

// Tracks reports whether the index of a working tree has a regular file below a folder. top is the
// absolute path of the tree, and folder a path in it with slashes. The result is false if the index
// cannot be read, is split, or has hashes other than SHA-1. See gitformat-index(5).
func Tracks(top, folder string) bool {
	path := filepath.Join(Folders(top)[0], "index")
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.OpenFile(path, os.O_RDONLY|OpenNonblock, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return indexHas(bufio.NewReader(f), []byte(folder+"/"))
}

// indexHas reports whether an index has a regular file whose name begins with a prefix.
func indexHas(r *bufio.Reader, prefix []byte) bool {
	var head struct {
		Signature      [4]byte
		Version, Count uint32
	}
	if err := binary.Read(r, binary.BigEndian, &head); err != nil || string(head.Signature[:]) != "DIRC" || head.Version < 2 || head.Version > 4 {
		return false
	}
	const maxName = 0xfff // the length of longer names is not known
	var name []byte
	for range head.Count {
		var entry struct {
			_     [24]byte
			Mode  uint32
			_     [12 + 20]byte
			Flags uint16
		}
		if binary.Read(r, binary.BigEndian, &entry) != nil {
			return false
		}
		size := 62
		if entry.Flags&0x4000 != 0 { // more flags follow
			if _, err := r.Discard(2); err != nil {
				return false
			}
			size += 2
		}
		if head.Version < 4 {
			name = name[:0]
		} else if cut, ok := readOffset(r); !ok || cut > len(name) {
			return false
		} else {
			name = name[:len(name)-cut]
		}
		rest, err := r.ReadBytes(0)
		if err != nil {
			return false
		}
		name = append(name, rest[:len(rest)-1]...)
		if length := int(entry.Flags & maxName); length != min(len(name), maxName) {
			return false
		}
		if entry.Mode&0xf000 == 0x8000 && bytes.HasPrefix(name, prefix) {
			return true
		}
		if head.Version < 4 {
			if _, err := r.Discard(7 - (size+len(name))%8); err != nil {
				return false
			}
		}
	}
	return false
}

// readOffset reads a number as git encodes offsets.
func readOffset(r io.ByteReader) (n int, ok bool) {
	for range 4 {
		c, err := r.ReadByte()
		if err != nil {
			return 0, false
		}
		if n += int(c & 0x7f); c&0x80 == 0 {
			return n, true
		}
		n = (n + 1) << 7
	}
	return 0, false
}
