//go:build !unix

package workspace

// openNonblock is 0 on systems without named pipes in the file system.
const openNonblock = 0
