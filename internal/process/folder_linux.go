package process

import (
	"os"
	"strconv"
)

// FolderPath is the path by which a child that is being started comes to an open
// folder, dir where there is none. It counts in the child until the program runs.
func FolderPath(open *os.File, dir string) string {
	if open == nil {
		return dir
	}
	return "/proc/self/fd/" + strconv.Itoa(int(open.Fd()))
}
