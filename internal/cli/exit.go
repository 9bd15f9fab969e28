package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/recording"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/text"
)

// The exit codes.
const (
	ExitOK           = 0
	ExitFailure      = 1
	ExitUsage        = 2
	ExitNotFound     = 3
	ExitParams       = 4
	ExitDenied       = 5
	ExitNeedsAnswer  = 6
	ExitToolError    = 7
	ExitSourceFailed = 8
	ExitCheckFailed  = 9
	ExitTimeout      = 124
	ExitHangup       = 129
	ExitInterrupted  = 130
	ExitTerminated   = 143
)

// exitCodesHelp is the text of `toolreg help exit-codes`.
const exitCodesHelp = `  0    done
  1    unexpected failure (I/O, bug)
  2    usage or settings error
  3    no such tool, server or version, or --import found nothing
  4    params invalid
  5    denied, by policy or by the person
  6    approval is needed and nobody can be asked
  7    the tool ran and reported an error
  8    a source failed: the server or command that the request needs, one that
       may have a tool that no other has, or any under --strict
  9    a check failed
  124  time limit
  129  SIGHUP
  130  SIGINT
  143  SIGTERM
`

// UsageError is a mistake in the command line, with a hint.
type UsageError = settings.InputError

// Usage returns the error for a mistake in the command line.
func Usage(message, hint string) error { return &UsageError{Err: errors.New(message), Hint: hint} }

// ExitError sets the exit code of a command whose outcome was already printed.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return "exit code " + strconv.Itoa(e.Code) }

// ErrorBody is an error as JSON.
type ErrorBody struct {
	Code    string               `json:"code"` // stable snake_case word
	Exit    int                  `json:"exit"` // exit code
	Message string               `json:"message"`
	Hint    string               `json:"hint,omitempty"`    // what to do
	Details []registry.Violation `json:"details,omitempty"` // for code invalid_params: what is wrong with the params
}

// NewErrorBody describes an error. Its code and its exit code are defined nowhere else.
func NewErrorBody(ctx context.Context, err error) ErrorBody {
	f := ErrorBody{Code: "failure", Exit: ExitFailure, Message: err.Error(), Hint: registry.HintOf(err)}
	if sig, ok := signalOf(ctx); ok && isCancelled(ctx, err) {
		return ErrorBody{Code: "interrupted", Exit: sig, Message: "interrupted"}
	}
	for _, c := range classes() {
		if c.matches(err, &f) {
			f.Code, f.Exit = c.word, c.exit
			break
		}
	}
	if f.Hint == "" && errors.Is(err, syscall.EMFILE) {
		f.Hint = "raise the limit on open files, such as with ulimit -n 256"
	}
	return f
}

// class is one row of the table of errors.
type class struct {
	word    string
	exit    int
	matches func(error, *ErrorBody) bool
}

// classes returns the table of errors; the first matching row is used.
func classes() []class {
	return []class{
		{"usage", ExitUsage, matchUsage},
		{"invalid_settings", ExitUsage, matchAs[*document.Error]},
		{"unknown_format", ExitUsage, matchAs[*provider.UnknownFormatError]},
		{"invalid_params", ExitParams, matchParams},
		{"denied", ExitDenied, matchIs(registry.ErrDenied)},
		{"needs_approval", ExitNeedsAnswer, matchNeedsApproval},
		{"limited", ExitToolError, matchAs[*exec.LimitedError]},
		{"timeout", ExitTimeout, matchTimeout},
		{"needs_login", ExitSourceFailed, matchIs(registry.ErrNeedsLogin)},
		{"not_recorded", ExitCheckFailed, matchAs[*recording.NoCallError]},
		{"not_found", ExitNotFound, matchNotOffered},
		{"tool_error", ExitToolError, matchAs[*exec.ToolError]},
		{"refused", ExitToolError, matchAs[*mcpclient.RefusedError]},
		{"source_failed", ExitSourceFailed, matchIs(registry.ErrSourceFailed)},
		{"not_found", ExitNotFound, matchIs(registry.ErrNotFound)},
		{"not_found", ExitNotFound, matchAs[*settings.NothingImportedError]},
	}
}

func matchUsage(err error, f *ErrorBody) bool {
	if e, ok := errors.AsType[*UsageError](err); ok {
		f.Hint = e.Hint
		return true
	}
	e, ok := errors.AsType[*args.Error](err)
	return ok && e.Usage
}

func matchAs[E error](err error, _ *ErrorBody) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func matchIs(target error) func(error, *ErrorBody) bool {
	return func(err error, _ *ErrorBody) bool {
		return errors.Is(err, target)
	}
}

// matchTimeout matches calls that reached their time limit, and tools that report a
// timeout of their own.
func matchTimeout(err error, _ *ErrorBody) bool {
	e, ok := errors.AsType[*exec.ToolError](err)
	return errors.Is(err, exec.ErrTimeout) || ok && e.Category == registry.ErrorTimeout
}

func matchParams(err error, f *ErrorBody) bool {
	if e, ok := errors.AsType[*registry.ArgsError](err); ok {
		f.Details = e.Violations
		return true
	}
	_, ok := errors.AsType[*args.Error](err)
	return ok
}

func matchNeedsApproval(err error, f *ErrorBody) bool {
	if e, ok := errors.AsType[*exec.NeedsConfirmation](err); ok {
		if e.Verdict.Contested != "" {
			return false
		}
		f.Message = strings.Replace(err.Error(), e.Error(),
			fmt.Sprintf("%q needs approval and nobody can be asked: %s", e.Tool, e.Verdict.Reason), 1)
		f.Hint = e.Hint
		return true
	}
	return errors.Is(err, registry.ErrNeedsConfirmation)
}

// matchNotOffered matches requests for what a server does not have: prompts,
// resources, or the requested resource.
func matchNotOffered(err error, _ *ErrorBody) bool {
	if e, ok := errors.AsType[*mcpclient.RefusedError](err); ok && e.Missing() {
		return true
	}
	_, ok := errors.AsType[*mcpclient.NotOfferedError](err)
	return ok
}

func isCancelled(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))
}

func outcome(ctx context.Context, err error) (code string, exit int) {
	f := NewErrorBody(ctx, err)
	return f.Code, f.Exit
}

// ErrorCode is the code of an error in JSON, with its exit code.
type ErrorCode struct {
	Word string
	Exit int
}

// ErrorCodes returns all error codes, for messages, filters and the manual. Exit of an
// interruption is the exit code of SIGINT.
func ErrorCodes() []ErrorCode {
	codes := []ErrorCode{{"tool_error", ExitToolError}, {"failure", ExitFailure}, {"interrupted", ExitInterrupted}}
	for _, c := range classes() {
		codes = text.AppendNew(codes, ErrorCode{c.word, c.exit})
	}
	return codes
}

// signalOf returns the exit code of the signal that ended the context.
func signalOf(ctx context.Context) (int, bool) {
	cause, ok := errors.AsType[errSignal](context.Cause(ctx))
	if !ok {
		return 0, false
	}
	return map[os.Signal]int{os.Interrupt: ExitInterrupted,
		syscall.SIGTERM: ExitTerminated, syscall.SIGHUP: ExitHangup}[cause.Signal], true
}

// errSignal is the cause of a context that ended because of a signal.
type errSignal struct{ os.Signal }

func (e errSignal) Error() string { return e.String() + " signal received" }
