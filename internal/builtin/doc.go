// Package builtin lists the tools that are part of the binary. They are grouped
// into families, one package each below this folder: search, file, shell, web
// and todo. Each tool has a file of its own, with its description next to it.
// The families share workspace, textfile and tool, and do not import each
// other.
//
// Every tool that takes a path uses the same workspace: a directory tree opened
// as an [os.Root], so that no path, link or race leads outside it. The
// workspace is opened by the first call that needs it; creating the definitions
// opens no file. The packages never print or prompt.
package builtin
