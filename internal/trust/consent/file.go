// Package consent describes what a project's settings would do if they applied,
// for the trust question: which programs they run, which addresses they connect
// to, what they loosen, and which variables and files they read.
//
// It examines files that are not trusted yet and may contain mistakes. Package
// settings reads the files, calls this package, and applies the settings only if
// the exact bytes of everything they can run were granted.
package consent

import (
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// File is a settings file that is not trusted yet.
type File struct {
	Path     string
	Root     *jsonx.Value // nil if the file could not be parsed
	Settings []Setting    // in file order
	// Project is the root of the project, and Expand expands the variables in a text, for
	// [Loosens].
	Project string
	Expand  func(string) (string, error)
}

// Setting is one setting of a [File]. It may contain mistakes.
type Setting struct {
	Row   *table.Row
	Key   string // as written, with dots
	Value *jsonx.Value
	Pos   jsonx.Pos
}
