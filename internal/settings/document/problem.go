package document

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
)

// Problem is one mistake at one place in a document, or in a variable or flag.
type Problem struct {
	File    string // path, variable or flag
	Line    int    // from 1; 0 if there is no file
	Col     int    // from 1, in characters; 0 if there is no file
	Message string // what is wrong; never contains a value that could be a secret
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

// Error holds every mistake that was found in documents, in order of file and line.
// It is a usage error: exit code 2.
type Error struct {
	Problems []Problem // never empty
}

// NewError returns an [*Error] with each of the problems once, or nil if there
// are none. Files keep the order in which they were read.
func NewError(problems []Problem) error {
	var unique []Problem
	for _, p := range problems {
		unique = text.AppendNew(unique, p)
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

// SortProblems is [SortByPlace] with duplicates removed.
func SortProblems(problems []Problem) []Problem {
	SortByPlace(problems)
	return slices.Compact(problems)
}

// SortByPlace sorts problems by position in their file.
func SortByPlace(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
}

// Unreadable returns the problem for a file that could not be read; err is the
// error of [trust.Read] or [trust.ReadOwned].
func Unreadable(path string, err error) Problem {
	p := Problem{File: path}
	var owner *trust.OwnerError
	switch {
	case errors.As(err, &owner):
		p.Message, p.Hint = "is not safe to use: "+owner.Reason, "make yourself its owner and only writer"
	case errors.Is(err, fs.ErrNotExist):
		p.Message = "no such file"
	case errors.Is(err, trust.ErrNotRegular):
		p.Message = trust.ErrNotRegular.Error()
	case errors.Is(err, trust.ErrTooLarge):
		p.Message = "is larger than 1 MiB"
	default:
		p.Message = text.Cause(err).Error()
	}
	return p
}
