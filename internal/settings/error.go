package settings

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Problem is one mistake in one place of the settings.
type Problem struct {
	File    string // path, variable or flag
	Line    int    // from 1; 0 where there is no file
	Col     int    // from 1, in characters; 0 where there is no file
	Message string // what is wrong; never holds a value that could be secret
	Hint    string // what to do next; may be empty
}

// String renders the problem as path:line:col: message (hint).
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		b.WriteString(":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Col))
	}
	b.WriteString(": " + p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Error holds every mistake that was found in the settings, in order of file
// and line. It is a usage error: exit code 2.
type Error struct {
	Problems []Problem // never empty
}

// Error renders one problem a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// failure returns the problems as an error, each once, or nil where there are
// none. Files keep the order in which they were read.
func failure(problems []Problem) error {
	var unique []Problem
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

// sortProblems orders the problems of one file by place.
func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
}
