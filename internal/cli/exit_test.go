package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// TestExitCodes checks the code, exit code and hint of each kind of error, also of
// wrapped errors. If several kinds match, the first one in the table applies.
func TestExitCodes(t *testing.T) {
	missing := &registry.NotFoundError{Name: "t"}
	hidden := &registry.NotFoundError{Name: "t", Hidden: &registry.Hidden{Setting: "s.yaml:3"}}
	broken := &registry.NotFoundError{Name: "t", Hidden: &registry.Hidden{Setting: "s.yaml:3", Err: errors.New("bad schema")}}
	ownHint := &UsageError{Err: errors.New("no such file"), Hint: "look elsewhere"}
	for name, tt := range map[string]struct {
		err  error
		word string
		exit int
		hint string
	}{
		"anything else":                      {errors.New("boom"), "failure", 1, ""},
		"too many open files":                {fmt.Errorf("open x: %w", syscall.EMFILE), "failure", 1, "raise the limit on open files, such as with ulimit -n 256"},
		"usage":                              {ownHint, "usage", 2, "look elsewhere"},
		"other words than a usage error's":   {errors.New("requires a moment"), "failure", 1, ""},
		"not found, but no tool":             {registry.ErrNotFound, "not_found", 3, ""},
		"a malformed argument":               {&args.Error{Arg: "x", Usage: true}, "usage", 2, ""},
		"an argument of the wrong type":      {&args.Error{Arg: "x=1"}, "invalid_params", 4, ""},
		"settings":                           {&document.Error{Problems: []document.Problem{{Message: "m"}}}, "invalid_settings", 2, ""},
		"a format":                           {&provider.UnknownFormatError{}, "unknown_format", 2, ""},
		"params":                             {registry.Invalid("t", "/x", "bad"), "invalid_params", 4, "see toolreg call t --help"},
		"a denial":                           {&exec.Denied{Tool: "t"}, "denied", 5, ""},
		"nobody to ask":                      {&exec.NeedsConfirmation{Tool: "t", Hint: "--yes"}, "needs_approval", 6, "--yes"},
		"nobody to ask, in short":            {registry.ErrNeedsConfirmation, "needs_approval", 6, ""},
		"a time limit":                       {&exec.TimeoutError{Tool: "t"}, "timeout", 124, "use --timeout to change it"},
		"a tool's own time limit":            {&exec.ToolError{Category: registry.ErrorTimeout}, "timeout", 124, ""},
		"a login":                            {fmt.Errorf("%w: %w", registry.ErrSourceFailed, registry.ErrNeedsLogin), "needs_login", 8, ""},
		"a tool that failed":                 {&exec.ToolError{Category: registry.ErrorExecution}, "tool_error", 7, ""},
		"a request that is refused":          {&mcpclient.RefusedError{Server: "s", Request: "prompts/get", Code: -32602, Message: "not found"}, "refused", 7, ""},
		"a resource that does not exist":     {&mcpclient.RefusedError{Server: "s", Request: "resources/read", Code: -32602, Message: "not found"}, "not_found", 3, "toolreg servers s --resources lists them"},
		"a server without resources":         {&mcpclient.NotOfferedError{Server: "s", What: "resources"}, "not_found", 3, ""},
		"a source":                           {registry.ErrSourceFailed, "source_failed", 8, ""},
		"no tool, but a source failed":       {fmt.Errorf("%w: %w", registry.ErrSourceFailed, missing), "source_failed", 8, "run toolreg list to see all tools"},
		"no tool":                            {missing, "not_found", 3, "run toolreg list to see all tools"},
		"a hidden tool":                      {hidden, "not_found", 3, "set at s.yaml:3"},
		"a tool that cannot be used":         {broken, "not_found", 3, "toolreg list --all shows every hidden tool, and why"},
		"no tool, with its own hint":         {hinted{missing}, "not_found", 3, "its own"},
		"no server":                          {&sources.NoServerError{}, "not_found", 3, "run toolreg servers to see all servers"},
		"a denial comes before a time limit": {fmt.Errorf("%w: %w", exec.ErrTimeout, registry.ErrDenied), "denied", 5, ""},
	} {
		for _, err := range []error{tt.err, fmt.Errorf("step 1: %w", tt.err)} {
			f := NewErrorBody(t.Context(), err)
			if f.Code != tt.word || f.Exit != tt.exit || f.Hint != tt.hint {
				t.Errorf("%s: %s, exit code %d, hint %q; want %s, %d, %q", name, f.Code, f.Exit, f.Hint, tt.word, tt.exit, tt.hint)
			}
		}
	}
	if f := NewErrorBody(t.Context(), registry.Invalid("t", "/x", "bad")); len(f.Details) != 1 || f.Details[0].Pointer != "/x" {
		t.Errorf("details %v", f.Details)
	}
}

type hinted struct{ error }

func (hinted) Hint() string    { return "its own" }
func (h hinted) Unwrap() error { return h.error }

// After a signal, an error that it caused is an interruption; an error with another
// cause is not.
func TestSignalsSetTheExitCode(t *testing.T) {
	for sig, want := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errSignal{sig})
		for _, err := range []error{fmt.Errorf("calling: %w", context.Canceled), fmt.Errorf("calling: %w", context.Cause(ctx))} {
			if word, exit := outcome(ctx, err); word != "interrupted" || exit != want {
				t.Errorf("%s, %v: %s, exit code %d", sig, err, word, exit)
			}
		}
		if word, exit := outcome(ctx, registry.ErrDenied); word != "denied" || exit != 5 {
			t.Errorf("%s, a denial: %s, exit code %d", sig, word, exit)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if word, exit := outcome(ctx, context.Canceled); word != "failure" || exit != 1 {
		t.Errorf("canceled without a signal: %s, exit code %d", word, exit)
	}
}
