package settings

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/settings/document"
)

// Error holds every mistake that was found in the settings, in order of file
// and line. It is a usage error: exit code 2.
type Error struct {
	Problems []document.Problem // never empty
}

// NewError returns an [*Error] with each of the problems once, or nil if there
// are none. Files keep the order in which they were read.
func NewError(problems []document.Problem) error {
	var unique []document.Problem
	for _, p := range problems {
		if !slices.Contains(unique, p) {
			unique = append(unique, p)
		}
	}
	if len(unique) == 0 {
		return nil
	}
	return &Error{Problems: unique}
}

// Error renders one problem per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
