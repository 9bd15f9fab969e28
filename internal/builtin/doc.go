// Package builtin holds the tools that are part of the binary (spec section
// 6.1), one file each with its description beside it.
//
// Every tool that takes a path goes through one workspace: a directory tree
// opened as an [os.Root], so that no path, link or race leads out of it. The
// workspace is opened when the first call needs it; making the definitions
// opens no file. The package prints nothing and asks nobody.
package builtin
