//go:build !unix

package git

// OpenNonblock is 0 on systems without named pipes in the file system.
const OpenNonblock = 0
