package registry

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinel errors; exit codes hang on them.
var (
	ErrNotFound          = errors.New("no such tool")
	ErrDenied            = errors.New("denied")
	ErrNeedsConfirmation = errors.New("approval is needed and nobody can be asked")
	ErrSourceFailed      = errors.New("source failed")
	// ErrNeedsLogin tells of a source that wants a person to log in first. It
	// comes beside ErrSourceFailed.
	ErrNeedsLogin = errors.New("needs login")
)

// FailedError tells, from a preview, that the call would fail and how: the params
// do not fit what they are about, such as a text to replace that the file does
// not hold. Whoever asks before a call shows the result in place of asking.
type FailedError struct {
	Result Result // with IsError set
}

func (e *FailedError) Error() string { return e.Result.Text() }

// Violation is one way in which params break the schema.
type Violation struct {
	Pointer  string `json:"pointer"`            // JSON pointer into the params, "" for the whole
	Keyword  string `json:"keyword,omitempty"`  // schema keyword, "" for a tool's own check
	Message  string `json:"message"`            // what is wrong
	Expected string `json:"expected,omitempty"` // what was wanted
}

// ArgsError tells that params are invalid. Violations is sorted by pointer and
// never empty.
type ArgsError struct {
	Tool       string
	Violations []Violation
}

func (e *ArgsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "invalid params for %s", e.Tool)
	for i, v := range e.Violations {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep)
		if v.Pointer != "" {
			b.WriteString(v.Pointer + ": ")
		}
		b.WriteString(v.Message)
	}
	return b.String()
}

// Invalid returns an ArgsError with one violation.
func Invalid(tool, pointer, format string, args ...any) *ArgsError {
	return &ArgsError{Tool: tool, Violations: []Violation{{Pointer: pointer, Message: fmt.Sprintf(format, args...)}}}
}
