package script

import (
	"bytes"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sharedMemory is the engine's descriptor of the shared memory: the first after the standard
// streams.
const sharedMemory = 3

// newRings returns memory to share with an engine that is started with the file. The caller must
// close the file and call free. memory is nil if the system does not support this.
func newRings() (memory *rings, file []*os.File, free func()) {
	fd, err := unix.MemfdCreate("toolreg-script", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, func() {}
	}
	f := os.NewFile(uintptr(fd), "memory")
	if err = f.Truncate(int64(unsafe.Sizeof(rings{}))); err == nil {
		var raw []byte
		if raw, err = mapRings(fd); err == nil {
			return (*rings)(unsafe.Pointer(&raw[0])), []*os.File{f}, func() { _ = unix.Munmap(raw) }
		}
	}
	_ = f.Close()
	return nil, nil, func() {}
}

// openRings returns the memory that the other process shares with this one.
func openRings() (*rings, error) {
	raw, err := mapRings(sharedMemory)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return (*rings)(unsafe.Pointer(&raw[0])), nil
}

func mapRings(fd int) ([]byte, error) {
	return unix.Mmap(fd, 0, int(unsafe.Sizeof(rings{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// resident returns a function that returns how many bytes of memory a process uses; 0 if unknown.
// The pid "self" means this process. closeFile must be called.
func resident(pid string) (used func() uint64, closeFile func()) {
	f, err := os.Open("/proc/" + pid + "/statm")
	if err != nil {
		return func() uint64 { return 0 }, func() {}
	}
	page := uint64(os.Getpagesize())
	var buf [128]byte
	return func() uint64 {
		n, _ := f.ReadAt(buf[:], 0)
		fields := bytes.Fields(buf[:n])
		if len(fields) < 2 {
			return 0
		}
		pages, _ := strconv.ParseUint(string(fields[1]), 10, 64)
		return pages * page
	}, func() { _ = f.Close() }
}
