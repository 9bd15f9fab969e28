package script

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Streams returns stdin and stdout for [Execute]. They do not block a thread, because waking
// one up takes longer than a call.
func Streams() (in, out *os.File) {
	if syscall.SetNonblock(0, true) != nil || syscall.SetNonblock(1, true) != nil {
		return os.Stdin, os.Stdout
	}
	return os.NewFile(0, "stdin"), os.NewFile(1, "stdout")
}

// spin is how long a reader waits actively for the other process.
const spin = 100 * time.Microsecond

// eager returns a reader of a pipe that waits actively for a moment, because waking up a
// process takes longer than most calls. It hardly does so while calls take longer.
func eager(in io.Reader) io.Reader {
	f, ok := in.(syscall.Conn)
	if !ok || runtime.NumCPU() == 1 {
		return in
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return in
	}
	return &eagerReader{Reader: in, conn: conn}
}

type eagerReader struct {
	io.Reader
	conn syscall.RawConn
	vain int // times in a row that it waited in vain
	skip int // reads that do not wait actively from now on
}

func (e *eagerReader) Read(p []byte) (int, error) {
	if e.skip > 0 {
		e.skip--
		return e.Reader.Read(p)
	}
	for begin := time.Now(); time.Since(begin) < spin; runtime.Gosched() {
		var n int
		var err error
		if e.conn.Read(func(fd uintptr) bool {
			n, err = syscall.Read(int(fd), p)
			return true
		}) != nil || n <= 0 && err != syscall.EAGAIN {
			return e.Reader.Read(p) // reports the end, or the error
		}
		if n > 0 {
			e.vain = 0
			return n, nil
		}
	}
	if e.vain++; e.vain >= 8 { // the calls take longer
		e.skip = 64
	}
	return e.Reader.Read(p)
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
