//go:build !unix

package workspace

// openNonblock is 0 where pipes have no place in the file system.
const openNonblock = 0
