package atomicfile

import (
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// Rename renames a file in a folder. Windows refuses that while another program has one of the
// files open, so it tries again for two seconds.
func Rename(folder *os.Root, from, to string) error {
	for start := time.Now(); ; time.Sleep(rand.N(20 * time.Millisecond)) {
		err := folder.Rename(from, to)
		busy := errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_SHARING_VIOLATION)
		if !busy || time.Since(start) > 2*time.Second {
			return err
		}
	}
}
