package atomicfile

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A file keeps its access control list. Without the list, its mask, which takes the place
// of the group bits, would give the group rights that the list denies.
func TestAttributesAreKept(t *testing.T) {
	folder, dir := open(t)
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	const nobody = 0xffffffff
	list := binary.LittleEndian.AppendUint32(nil, 2) // the version, then tag, rights and id of each entry
	for _, e := range [][3]uint32{{1, 6, nobody}, {2, 6, 1000}, {4, 0, nobody}, {0x10, 6, nobody}, {0x20, 0, nobody}} {
		list = binary.LittleEndian.AppendUint16(list, uint16(e[0]))
		list = binary.LittleEndian.AppendUint16(list, uint16(e[1]))
		list = binary.LittleEndian.AppendUint32(list, e[2])
	}
	if err := errors.Join(unix.Setxattr(path, accessList, list, 0), unix.Setxattr(path, "user.note", []byte("kept"), 0)); err != nil {
		t.Skip("the file system of the test has no attributes:", err)
	}
	like, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(folder, "f", []byte("new"), Options{Like: like}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{accessList: string(list), "user.note": "kept"} {
		value := make([]byte, 1024)
		n, err := unix.Getxattr(path, name, value)
		if err != nil || string(value[:n]) != want {
			t.Errorf("%s is %q, want %q; %v", name, value[:max(n, 0)], want, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != like.Mode() {
		t.Errorf("mode %v, want %v; %v", info.Mode(), like.Mode(), err)
	}
}

// If the group of a file cannot be kept, another group must not get its rights.
func TestAnotherGroupGetsNoRights(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	const nobody = 65534
	folder, dir := open(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{"shared": 0o664, "private": 0o660} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, mode), os.Chown(path, 1234, 1235)); err != nil {
			t.Fatal(err)
		}
		like, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { // on a thread of its own, which ends with it
			runtime.LockOSThread()
			done <- errors.Join(unix.Setfsgid(nobody), unix.Setfsuid(nobody), Write(folder, name, []byte("new"), Options{Like: like}))
		}()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		want := map[string]fs.FileMode{"shared": 0o644, "private": 0o600}[name]
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, want %v; %v", name, info.Mode(), want, err)
		}
	}
}
