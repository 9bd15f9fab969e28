package registry

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// State is the state of a source, as discover shows it.
type State string

// The states of a source.
const (
	StateOK      State = "ok"
	StateFailed  State = "failed"
	StateSkipped State = "skipped"
)

// SourceReport describes the outcome of one source.
type SourceReport struct {
	Name     string
	State    State
	Tools    int // tools found, before filters and conflicts
	Duration time.Duration
	Err      error // why it failed
}

// Severity is the severity of a diagnostic.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Diagnostic is a problem that did not stop the run.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`             // stable snake_case word
	Source   string   `json:"source,omitempty"` // source that it is about
	Tool     string   `json:"tool,omitempty"`   // tool that it is about
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"` // what to do
}

// Warning returns a diagnostic of severity warning. source and hint may be empty.
func Warning(code, source, message, hint string) Diagnostic {
	return Diagnostic{Severity: SeverityWarning, Code: code, Source: source, Message: message, Hint: hint}
}

// Hidden is a tool that a setting excludes from the registry, or that is
// quarantined.
type Hidden struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Source  string `json:"source"`
	Reason  string `json:"reason"`            // why it is not registered
	Setting string `json:"setting,omitempty"` // origin of the setting that hides it: file:line, a flag or "default"
	Now     string `json:"-"`                 // the new name, if Name is the one that an override replaced
	Err     error  `json:"-"`                 // why the tool is quarantined, or the failure of its server
	Kept    bool   `json:"-"`                 // the name is kept for the server of Source
}

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
