// Package builtin lists the tools that are part of the binary (spec section
// 6.1). They are grouped in families below this folder, one file each with its
// description next to it: search, file, shell, web and todo, which share
// workspace, textfile and tool and do not know each other.
//
// Every tool that takes a path goes through one workspace: a directory tree
// opened as an [os.Root], so that no path, link or race leads outside it. The
// workspace is opened when the first call needs it; creating the definitions
// opens no file. The packages print nothing and ask nobody.
package builtin
