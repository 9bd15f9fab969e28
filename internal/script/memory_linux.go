package script

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// Streams returns stdin and stdout for [Execute]. They do not block a thread, because waking
// one up takes longer than a call.
func Streams() (in, out *os.File) {
	if syscall.SetNonblock(0, true) != nil || syscall.SetNonblock(1, true) != nil {
		return os.Stdin, os.Stdout
	}
	return os.NewFile(0, "stdin"), os.NewFile(1, "stdout")
}

// resident returns a function that returns the bytes of memory that a process uses; 0 if
// that is not known. pid "self" is this process. close must be called.
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
