//go:build !linux

package script

import (
	"io"
	"os"
)

// Streams returns stdin and stdout for [Execute].
func Streams() (in, out *os.File) { return os.Stdin, os.Stdout }

// resident is only known on Linux.
func resident(string) (used func() uint64, closeFile func()) {
	return func() uint64 { return 0 }, func() {}
}

// eager returns a reader that waits as in does.
func eager(in io.Reader) io.Reader { return in }
