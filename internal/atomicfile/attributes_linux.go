package atomicfile

import (
	"bytes"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// accessList is the attribute of a file's access control list.
const accessList = "system.posix_acl_access"

// copyAttributes gives f the access control list and the extended attributes of the file
// that it replaces. Without the list, the group bits of the mode, which are the mask of
// the list, would give the group rights that the list denies.
func copyAttributes(f *os.File, folder *os.Root, name string) error {
	old, err := folder.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil // the file does not exist, or only its owner may read the attributes
	}
	defer old.Close()
	names := make([]byte, 64<<10) // the kernel's limit
	n, err := unix.Flistxattr(int(old.Fd()), names)
	if err != nil {
		return nil // the file system has none
	}
	value := make([]byte, 64<<10) // likewise
	for attr := range bytes.SplitSeq(names[:n], []byte{0}) {
		attr := string(attr)
		if attr != accessList && !strings.HasPrefix(attr, "user.") {
			continue // such as capabilities, which new content must not get
		}
		size, err := unix.Fgetxattr(int(old.Fd()), attr, value)
		if err == nil {
			err = unix.Fsetxattr(int(f.Fd()), attr, value[:size], 0)
		}
		if err != nil && attr == accessList && !errors.Is(err, unix.ENODATA) {
			return err
		}
	}
	return nil
}
