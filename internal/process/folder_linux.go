package process

import (
	"os"
	"strconv"
)

// FolderPath returns the path by which a starting child can reach an open
// folder; dir if it is nil. The path is valid in the child until the program
// runs.
func FolderPath(open *os.File, dir string) string {
	if open == nil {
		return dir
	}
	return "/proc/self/fd/" + strconv.Itoa(int(open.Fd()))
}
