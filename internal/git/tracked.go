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
	return indexHas(bufio.NewReaderSize(f, maxPath), []byte(folder+"/"))
}

// maxPath limits the names that are read, in bytes.
const maxPath = 64 << 10

// indexHas reports whether an index has a regular file whose name begins with a prefix.
func indexHas(r *bufio.Reader, prefix []byte) bool {
	var head struct {
		Signature      [4]byte
		Version, Count uint32
	}
	if err := binary.Read(r, binary.BigEndian, &head); err != nil ||
		string(head.Signature[:]) != "DIRC" || head.Version < 2 || head.Version > 4 {
		return false
	}
	const maxName = 0xfff // the length of longer names is not known
	var name []byte
	entry := make([]byte, 24+4+12+20+2) // times and the like, mode, owner and size, hash, flags
	for range head.Count {
		if _, err := io.ReadFull(r, entry); err != nil {
			return false
		}
		mode, flags := binary.BigEndian.Uint32(entry[24:]), binary.BigEndian.Uint16(entry[60:])
		size := len(entry)
		if flags&0x4000 != 0 { // more flags follow
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
		rest, err := r.ReadSlice(0)
		if err != nil || len(name)+len(rest) > maxPath {
			return false
		}
		name = append(name, rest[:len(rest)-1]...)
		if length := int(flags & maxName); length != min(len(name), maxName) {
			return false
		}
		switch within := bytes.HasPrefix(name, prefix); {
		case within && mode&0xf000 == 0x8000:
			return true
		case !within && bytes.Compare(name, prefix) > 0: // they are sorted
			return false
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
