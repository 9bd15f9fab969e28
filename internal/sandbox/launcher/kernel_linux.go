//go:build amd64 || arm64

package launcher

import (
	"syscall"
	"unsafe"
)

// Numbers of system calls that are the same on every architecture, and other
// kernel constants that package syscall does not have.
const (
	sysOpenTree     = 428
	sysMoveMount    = 429
	sysFsopen       = 430
	sysFsconfig     = 431
	sysFsmount      = 432
	sysCloseRange   = 436
	sysOpenat2      = 437
	sysMountSetattr = 442
	sysLandlock     = 444 // create_ruleset, add_rule, restrict_self

	atEmptyPath = 0x1000
	atRecursive = 0x8000
	atFDCWD     = -0x64
	oPath       = 0x200000
	wall        = 0x40000000

	openTreeClone   = 1
	openTreeCloexec = syscall.O_CLOEXEC
	moveFromEmpty   = 4
	moveToEmpty     = 0x40

	// RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS.
	resolvePlainly = 4 | 2
)

// Mount attributes, for Op.Flags.
const (
	ReadOnly = 1
	NoSuid   = 2
	NoDev    = 4
	NoExec   = 8
)

func closeFrom(fd int) error {
	_, _, errno := syscall.Syscall(sysCloseRange, uintptr(fd), 1<<31-1, 0)
	return errorOf(errno)
}

func errorOf(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// openPlainly opens a path without symbolic links as O_PATH, so not for
// reading.
func openPlainly(dir int, path string) (int, error) {
	how := struct{ flags, mode, resolve uint64 }{oPath | syscall.O_CLOEXEC | syscall.O_NOFOLLOW, 0, resolvePlainly}
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return 0, err
	}
	fd, _, errno := syscall.Syscall6(sysOpenat2, uintptr(dir), uintptr(unsafe.Pointer(name)),
		uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0)
	return int(fd), errorOf(errno)
}

// clone returns a copy of the mounts at a path descriptor.
func clone(place int) (int, error) {
	fd, _, errno := syscall.Syscall(sysOpenTree, uintptr(place),
		uintptr(unsafe.Pointer(&empty)), openTreeClone|openTreeCloexec|atEmptyPath|atRecursive)
	return int(fd), errorOf(errno)
}

// empty is the path that refers to a descriptor itself.
var empty byte

// setAttributes restricts a tree of mounts.
func setAttributes(tree, attributes int, recursive bool) error {
	attr := struct{ set, clear, propagation, userns uint64 }{set: uint64(attributes)}
	flags := uintptr(atEmptyPath)
	if recursive {
		flags |= atRecursive
	}
	_, _, errno := syscall.Syscall6(sysMountSetattr, uintptr(tree), uintptr(unsafe.Pointer(&empty)),
		flags, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	return errorOf(errno)
}

// attach moves a tree of mounts to a path descriptor.
func attach(tree, place int) error {
	_, _, errno := syscall.Syscall6(sysMoveMount, uintptr(tree), uintptr(unsafe.Pointer(&empty)),
		uintptr(place), uintptr(unsafe.Pointer(&empty)), moveFromEmpty|moveToEmpty, 0)
	return errorOf(errno)
}

// option is one parameter of a new file system; without a value it is a flag.
type option struct{ key, value string }

// newMount creates a file system that is not yet attached anywhere.
func newMount(kind string, attributes int, options ...option) (int, error) {
	const setFlag, setString, create, cloexec = 0, 1, 6, 1
	name, err := syscall.BytePtrFromString(kind)
	if err != nil {
		return 0, err
	}
	fs, _, errno := syscall.Syscall(sysFsopen, uintptr(unsafe.Pointer(name)), cloexec, 0)
	if errno != 0 {
		return 0, errno
	}
	defer syscall.Close(int(fs))
	for _, o := range options {
		key, err := syscall.BytePtrFromString(o.key)
		if err != nil {
			return 0, err
		}
		value, err := syscall.BytePtrFromString(o.value)
		if err != nil {
			return 0, err
		}
		if o.value == "" {
			_, _, errno = syscall.Syscall6(sysFsconfig, fs, setFlag, uintptr(unsafe.Pointer(key)), 0, 0, 0)
		} else {
			_, _, errno = syscall.Syscall6(sysFsconfig, fs, setString,
				uintptr(unsafe.Pointer(key)), uintptr(unsafe.Pointer(value)), 0, 0)
		}
		if errno != 0 {
			return 0, errno
		}
	}
	if _, _, errno := syscall.Syscall6(sysFsconfig, fs, create, 0, 0, 0, 0); errno != 0 {
		return 0, errno
	}
	mount, _, errno := syscall.Syscall(sysFsmount, fs, cloexec, uintptr(attributes))
	return int(mount), errorOf(errno)
}

func prctl(operation, value uintptr) error {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, operation, value, 0, 0, 0, 0)
	return errorOf(errno)
}

// signals is the number of signals, with 0, which is none.
const signals = 65

// ignoreSignal is SIG_IGN.
const ignoreSignal = 1

// action is the kernel's struct sigaction. Its zero value is the default action.
type action struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

func setAction(signal uintptr, a *action) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, signal, uintptr(unsafe.Pointer(a)), 0, 8, 0, 0)
}

func openFile(path string) (int, error) {
	return syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
}

func writeFile(path, text string) error {
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_, err = syscall.Write(fd, []byte(text))
	return err
}

func readAll(fd int) ([]byte, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, err
	}
	out := make([]byte, st.Size)
	for n := 0; n < len(out); {
		got, err := syscall.Pread(fd, out[n:], int64(n))
		if err != nil || got == 0 {
			return nil, syscall.EBADMSG
		}
		n += got
	}
	return out, nil
}

func itoa(n int) string {
	var buf [20]byte
	i := len(buf)
	for ok := true; ok; ok = n > 0 {
		i--
		buf[i] = byte('0' + n%10)
		n /= 10
	}
	return string(buf[i:])
}
