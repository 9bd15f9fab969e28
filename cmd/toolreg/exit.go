package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/declare"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// The exit codes of spec section 3.
const (
	exitOK           = 0
	exitFailure      = 1
	exitUsage        = 2
	exitNotFound     = 3
	exitParams       = 4
	exitDenied       = 5
	exitNeedsAnswer  = 6
	exitToolError    = 7
	exitSourceFailed = 8
	exitCheckFailed  = 9
	exitTimeout      = 124
	exitHangup       = 129
	exitInterrupted  = 130
	exitTerminated   = 143
)

// exitCodesHelp is the text of `toolreg help exit-codes`.
const exitCodesHelp = `  0    done
  1    unexpected failure (I/O, bug)
  2    usage or settings error
  3    no such tool, server or version
  4    params invalid
  5    denied, by policy or by the person
  6    approval needed and nobody to ask
  7    the tool ran and reported an error
  8    a source failed: the server or command that the request needs, or any
       under --strict
  9    a check failed
  124  time limit
  129  SIGHUP
  130  SIGINT
  143  SIGTERM
`

// usageError is a mistake in the command line.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// reported is an outcome that was printed already: only its code is left.
type reported struct {
	code int
}

func (e *reported) Error() string { return "reported" }

// failure is what is known of an error for the person and for --json.
type failure struct {
	word    string // stable
	exit    int
	message string
	hint    string
	details []registry.Violation
}

// classify turns an error into its word and exit code: the one place that
// knows both.
func classify(ctx context.Context, err error) failure {
	f := failure{word: "failure", exit: exitFailure, message: err.Error()}
	if sig, ok := signalOf(ctx); ok && isCancelled(ctx, err) {
		return failure{word: "interrupted", exit: sig, message: "interrupted"}
	}
	for _, c := range classes {
		if c.matches(err, &f) {
			f.word, f.exit = c.word, c.exit
			break
		}
	}
	if f.hint == "" && strings.Contains(f.message, syscall.EMFILE.Error()) {
		f.hint = "raise the limit on open files, such as with ulimit -n 256"
	}
	return f
}

// class is one row of the mapping from errors to exit codes; the first row
// that matches counts.
type class struct {
	word    string
	exit    int
	matches func(error, *failure) bool
}

var classes = []class{
	{"usage", exitUsage, matchUsage},
	{"invalid_settings", exitUsage, matchAs[*settings.Error]},
	{"unknown_format", exitUsage, matchAs[*declare.UnknownFormatError]},
	{"invalid_params", exitParams, matchParams},
	{"denied", exitDenied, matchIs(registry.ErrDenied, "")},
	{"needs_approval", exitNeedsAnswer, matchNeedsApproval},
	{"timeout", exitTimeout, matchIs(exec.ErrTimeout, "")},
	{"needs_login", exitSourceFailed, matchIs(registry.ErrNeedsLogin, "")},
	{"not_found", exitNotFound, matchNotOffered},
	{"refused", exitToolError, matchAs[*mcpclient.RefusedError]},
	{"source_failed", exitSourceFailed, matchIs(registry.ErrSourceFailed, "")},
	{"not_found", exitNotFound, matchNotFound},
}

func matchUsage(err error, f *failure) bool {
	if e, ok := errors.AsType[*usageError](err); ok {
		f.hint = e.hint
		return true
	}
	if e, ok := errors.AsType[*args.Error](err); ok {
		return e.Usage
	}
	// cobra's own mistakes come as plain errors.
	for _, p := range []string{"unknown command ", "unknown flag", "unknown shorthand", "flag needs an argument", "invalid argument ", "accepts ", "requires "} {
		if strings.HasPrefix(err.Error(), p) {
			f.hint = "see toolreg --help"
			return true
		}
	}
	return false
}

func matchAs[E error](err error, _ *failure) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func matchIs(target error, hint string) func(error, *failure) bool {
	return func(err error, f *failure) bool {
		if errors.Is(err, target) {
			f.hint = hint
			return true
		}
		return false
	}
}

func matchParams(err error, f *failure) bool {
	if e, ok := errors.AsType[*registry.ArgsError](err); ok {
		f.details = e.Violations
		f.hint = "see toolreg list " + e.Tool
		if p, ok := errors.AsType[*promptArgsError](err); ok {
			f.hint = "see toolreg servers " + p.server + " --prompts"
		}
		return true
	}
	_, ok := errors.AsType[*args.Error](err)
	return ok
}

func matchNeedsApproval(err error, f *failure) bool {
	if e, ok := errors.AsType[*exec.NeedsConfirmation](err); ok {
		f.message = strings.TrimSuffix(err.Error(), e.Error()) + fmt.Sprintf("%q needs approval and nobody is there to ask: %s", e.Tool, e.Verdict.Reason)
		f.hint = e.Hint
		return true
	}
	if _, ok := errors.AsType[*grantNeedsPerson](err); ok {
		f.hint = "toolreg trust grant --hash HASH grants without a question; toolreg trust status shows the hash"
	}
	return errors.Is(err, registry.ErrNeedsConfirmation)
}

func matchNotFound(err error, f *failure) bool {
	if !errors.Is(err, registry.ErrNotFound) {
		return false
	}
	f.hint = "toolreg list shows what there is"
	if _, ok := errors.AsType[*policy.NoApprovalError](err); ok {
		f.hint = "toolreg approvals list shows what there is"
	}
	if _, ok := errors.AsType[*noServerError](err); ok {
		f.hint = "toolreg servers shows what there is"
	}
	if _, ok := errors.AsType[*noProjectError](err); ok {
		f.hint = "toolreg init makes them; --root DIR names another project"
	}
	if e, ok := errors.AsType[*registry.NotFoundError](err); ok && e.Hidden != nil && e.Hidden.Setting != "" {
		f.hint = "set at " + e.Hidden.Setting
	}
	return true
}

// matchNotOffered finds what a server does not have: prompts, resources, or the
// one that was named.
func matchNotOffered(err error, f *failure) bool {
	if e, ok := errors.AsType[*noPromptError](err); ok {
		f.hint = "toolreg servers " + e.server + " --prompts shows what there is"
		return true
	}
	if e, ok := errors.AsType[*mcpclient.RefusedError](err); ok && e.Missing() {
		f.hint = "toolreg servers " + e.Server + " --resources shows what there is"
		return true
	}
	_, ok := errors.AsType[*mcpclient.NotOfferedError](err)
	return ok
}

func isCancelled(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))
}

// signalOf returns the exit code of the signal that ended the context.
func signalOf(ctx context.Context) (int, bool) {
	cause := context.Cause(ctx)
	if cause == nil {
		return 0, false
	}
	// signal.NotifyContext names the signal in its cause, by text alone.
	for sig, code := range map[os.Signal]int{os.Interrupt: exitInterrupted, syscall.SIGTERM: exitTerminated, syscall.SIGHUP: exitHangup} {
		if strings.HasPrefix(cause.Error(), sig.String()+" signal received") {
			return code, true
		}
	}
	return 0, false
}
