package document

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"

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
		p.Message = PlainError(err)
	}
	return p
}

// PlainError returns the reason for a failed file operation without the path and
// the operation.
func PlainError(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
