// Package consent says what a project's settings would do if they counted: which
// programs they run and which addresses they reach, what they loosen, which
// variables and files they read. It is the data of the question whether a project
// is trusted.
//
// It judges files that nobody has allowed yet, and may hold mistakes. Package
// settings reads them, asks here, and lets them count only when the exact bytes
// of all that they can run were granted.
package consent

import (
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// File is a file of settings that nobody has allowed yet.
type File struct {
	Path     string
	Root     *document.Node // nil where the file could not be parsed
	Settings []Setting      // in file order
}

// Setting is one setting of a [File], which may have mistakes.
type Setting struct {
	Row   *table.Row
	Key   string // as written, dotted
	Value *document.Node
	Line  int // from 1
}
