//go:build amd64 || arm64

package sandbox

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// place is a name in a folder, as a program sees it.
type place struct {
	folder *os.File // nil means it cannot be found
	id     string   // of the folder as in [Names.Has]; "" if the program could make it another one
	path   string   // of the folder, without links
	name   string   // "" means the call names no file
}

func (p place) close() { _ = p.folder.Close() }

// findPlace finds the place of a path that is relative to a link of /proc.
func findPlace(process, base, path string) place {
	if strings.HasPrefix(path, "/") {
		base = process + "/root"
	}
	path = strings.TrimRight(path, "/")
	at := strings.LastIndexByte(path, '/') + 1
	p := place{name: path[at:]}
	if p.name == "." || p.name == ".." {
		p.name = ""
	}
	if p.name == "" {
		return p
	}
	var st unix.Stat_t
	p.folder = openFolder(base, path[:at], unix.RESOLVE_NO_SYMLINKS)
	if p.folder != nil && unix.Fstat(int(p.folder.Fd()), &st) == nil {
		p.id = identity(&st)
	} else if p.folder == nil {
		folder := path[:at]
		if !strings.HasPrefix(path, "/") { // an absolute link on the way means the root of the program
			start, _ := os.Readlink(base)
			folder = start + "/" + folder
		}
		p.folder = openFolder(process+"/root", folder, unix.RESOLVE_NO_MAGICLINKS)
	}
	if p.folder != nil {
		p.path, _ = os.Readlink("/proc/self/fd/" + strconv.Itoa(int(p.folder.Fd())))
	}
	return p
}

// readLink returns the target of the link at a place; "" if there is no link.
func readLink(p place) string {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(p.folder.Fd()), p.name, buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

// descriptor returns the number of the descriptor through which a path leads to a file.
func descriptor(path string) (fd string, ok bool) {
	for _, folder := range []string{"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"} {
		if fd, ok = strings.CutPrefix(path, folder); ok {
			_, err := strconv.Atoi(fd)
			return fd, err == nil
		}
	}
	return "", false
}

// openFolder opens a folder by a path relative to a link of /proc, which is the root of absolute
// paths; nil if there is none.
func openFolder(base, path string, resolve uint64) *os.File {
	from, err := unix.Open(base, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	if path == "" {
		return os.NewFile(uintptr(from), base)
	}
	defer unix.Close(from)
	if path[0] == '/' {
		resolve |= unix.RESOLVE_IN_ROOT
	}
	folder, err := openFolderAt(from, path, resolve)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(folder), path)
}

// openFolderAt opens a folder, with O_PATH, by a path relative to another one.
func openFolderAt(folder int, path string, resolve uint64) (int, error) {
	return unix.Openat2(folder, path,
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: resolve})
}

func identity(st *unix.Stat_t) string {
	return strconv.FormatUint(uint64(st.Dev), 10) + ":" + strconv.FormatUint(st.Ino, 10)
}

// isReadOnly reports whether the file at a place, or its folder if there is no file, is on a
// read-only mount.
func (p place) isReadOnly() bool {
	fd, err := unix.Openat(int(p.folder.Fd()), p.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
	} else {
		fd = int(p.folder.Fd())
	}
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && st.Flags&unix.ST_RDONLY != 0
}
