package registry

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Sentinel errors. The exit codes depend on them.
var (
	ErrNotFound          = errors.New("no such tool")
	ErrDenied            = errors.New("denied")
	ErrNeedsConfirmation = errors.New("approval is needed and nobody can be asked")
	ErrSourceFailed      = errors.New("source failed")
	// ErrNeedsLogin reports that a person has to log in to a source first. It
	// is combined with ErrSourceFailed.
	ErrNeedsLogin = errors.New("needs login")
)

// FailedError is returned by [Tool.Preview] if the call would fail because the
// params do not match the current state, for example if a file does not contain the
// text to replace. The caller returns Result instead of asking for confirmation.
type FailedError struct {
	Result Result // with IsError set
}

func (e *FailedError) Error() string { return e.Result.Text() }

// Failure is an error with a text and a hint of its own. It matches Kind, such as [ErrNotFound], and wraps Cause.
type Failure struct {
	Text  string
	Help  string // the hint; "" means that of the cause
	Kind  error  // may be nil
	Cause error  // may be nil
}

func (f *Failure) Error() string { return f.Text }

// Unwrap returns the kind and the cause.
func (f *Failure) Unwrap() []error {
	return slices.DeleteFunc([]error{f.Kind, f.Cause}, func(err error) bool { return err == nil })
}

// Hint returns the hint, which may be "".
func (f *Failure) Hint() string { return cmp.Or(f.Help, HintOf(f.Cause)) }

// HintOf returns the hint that an error carries, or "".
func HintOf(err error) string {
	if e, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		return e.Hint()
	}
	return ""
}

// Violation is one way in which params do not match their schema.
type Violation struct {
	Pointer  string `json:"pointer"`            // JSON pointer into the params; "" for the whole
	Keyword  string `json:"keyword,omitempty"`  // schema keyword; "" if a tool's own check failed
	Message  string `json:"message"`            // what is wrong
	Expected string `json:"expected,omitempty"` // what was expected
	Setting  string `json:"setting,omitempty"`  // file:line of an override that is the reason; not for models
}

// ArgsError reports that params are invalid. Violations is sorted by pointer
// and never empty.
type ArgsError struct {
	Tool       string
	Violations []Violation
}

func (e *ArgsError) Error() string {
	return fmt.Sprintf("invalid params for %s: %s", e.Tool, Describe(e.Violations))
}

// Hint says where the params are described.
func (e *ArgsError) Hint() string { return "see toolreg call " + e.Tool + " --help" }

// Describe returns violations as one line.
func Describe(violations []Violation) string {
	var b strings.Builder
	for i, v := range violations {
		if i > 0 {
			b.WriteString("; ")
		}
		if v.Pointer != "" {
			b.WriteString(v.Pointer + ": ")
		}
		b.WriteString(v.Message)
		if v.Setting != "" {
			b.WriteString(" (" + v.Setting + ")")
		}
	}
	return b.String()
}

// Invalid returns an ArgsError with one violation.
func Invalid(tool, pointer, format string, args ...any) *ArgsError {
	return &ArgsError{Tool: tool, Violations: []Violation{{Pointer: pointer, Message: fmt.Sprintf(format, args...)}}}
}
