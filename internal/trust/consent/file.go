// Package consent says what a project's settings would do if they applied: which
// programs they run and which addresses they reach, what they loosen, which
// variables and files they read. The trust question shows these.
//
// It examines files that nobody has allowed yet and that may contain mistakes.
// Package settings reads the files, calls this package, and applies them only
// if the exact bytes of everything they can run were granted.
package consent

import (
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// File is a file of settings that nobody has allowed yet.
type File struct {
	Path     string
	Root     *jsonx.Value // nil if the file could not be parsed
	Settings []Setting    // in file order
}

// Setting is one setting of a [File], which may have mistakes.
type Setting struct {
	Row   *table.Row
	Key   string // as written, dotted
	Value *jsonx.Value
	Pos   jsonx.Pos
}
