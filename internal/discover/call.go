package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

const (
	// callGrace is how long a canceled call may take to clean up. The executor waits
	// longer.
	callGrace = 1500 * time.Millisecond
	// callLinger is how long a call waits for output of processes that its
	// program left running.
	callLinger = time.Second
)

// stream passes the program's output to the call's Emit and Spill, so that only its
// beginning and end are kept in memory. Output that is parsed as a whole is not
// cut.
func stream(spec *process.Spec, d *declaration, isResult bool, call registry.Call) {
	if isResult {
		return
	}
	show := func(int, []byte) {}
	if d.definition.CanUpdateOutput && call.Emit != nil {
		show = emitter(call.Emit)
	}
	spill := func([]byte) {}
	if call.Spill != nil && len(d.definition.OutputSchema) == 0 {
		spec.Keep, spill = call.Keep, call.Spill
	}
	spec.Output = func(stream int, p []byte) {
		show(stream, p)
		spill(p)
	}
}

// emitter returns a writer that passes stdout on as it arrives, in complete
// characters.
func emitter(emit func(registry.Content)) func(int, []byte) {
	var rest []byte
	return func(stream int, p []byte) {
		if stream != 1 {
			return
		}
		whole, partial := text.WholeRunes(append(rest, p...))
		if len(whole) > 0 {
			emit(registry.TextContent(decode(whole)))
		}
		rest = slices.Clone(partial)
	}
}

// callResult returns the result for the model: stdout if the call succeeded,
// otherwise the five-line report.
func callResult(o process.Outcome, err error, tool string) registry.Result {
	if err == nil && o.Err() == nil {
		if len(o.Stderr) == 0 {
			return textResult(o, tool)
		}
		// A successful program that wrote to stderr is not an error; the model can
		// judge.
		result := registry.TextResult(report(o, err))
		result.Truncated = o.Truncated
		return result
	}
	result := registry.ErrorResult(registry.ErrorExecution, report(o, err))
	result.Summary, result.Truncated = cmp.Or(err, o.Err()).Error(), o.Truncated
	return result
}

// paramsOf returns the params of a call as a program gets them on stdin.
func paramsOf(call registry.Call) []byte {
	if call.Params == nil {
		return []byte("{}")
	}
	return call.Params
}

// runTool runs the program of a tool. showStderr says whether the result of a program that succeeds has what it
// wrote to stderr.
func (o *Options) runTool(ctx context.Context, spec *process.Spec, d *declaration, isResult, showStderr bool,
	call registry.Call) registry.Result {
	spec.MaxOutput, spec.Grace, spec.Linger = o.Limits.Output, callGrace, callLinger
	stream(spec, d, isResult, call)
	start := time.Now()
	out, err := process.ConfinementOf(ctx).Run(ctx, *spec)
	if err == nil && out.Err() == nil {
		if isResult {
			return wholeResult(ctx, out.Stdout, o.ProjectRoot, d.definition.OutputSchema)
		}
		if !showStderr {
			out.Stderr, out.StderrHead, out.StderrBytes = nil, 0, 0
		}
	}
	if errors.Is(err, process.ErrOutputLimit) {
		err = fmt.Errorf("%w: more than %d bytes on stdout or stderr (limits.result)", err, spec.MaxOutput)
	}
	result := callResult(out, err, d.definition.Name)
	switch {
	case result.IsError && ctx.Err() != nil:
		result.ErrorCategory = interrupted(ctx.Err())
	case !result.IsError && len(d.definition.OutputSchema) > 0:
		result = structured(ctx, d.definition.OutputSchema, out.Stdout, result)
	}
	result.Duration = time.Since(start)
	return result
}

// interrupted returns the error category of a call that ended because its context
// was done.
func interrupted(err error) registry.ErrorCategory {
	if errors.Is(err, context.DeadlineExceeded) {
		return registry.ErrorTimeout
	}
	return registry.ErrorCancellation
}

// report returns the text for a call that failed or wrote to stderr, in the format
// of Gemini CLI.
func report(o process.Outcome, err error) string {
	failed, code, signal := "(none)", strconv.Itoa(o.ExitCode), "(none)"
	if err != nil {
		failed = err.Error()
	}
	if o.ExitCode < 0 {
		code = "(none)"
	}
	if o.Signal != "" {
		signal = o.Signal
	}
	if _, ok := errors.AsType[*process.StartError](err); ok {
		code = startCode(err)
	}
	// Allocate once, because the output may be large.
	return "Stdout: " + cmp.Or(printed(o.Stdout, o.StdoutHead, o.StdoutBytes), "(empty)") +
		"\nStderr: " + cmp.Or(cutText(o.Stderr, o.StderrHead, o.StderrBytes), "(empty)") +
		"\nError: " + failed + "\nExit Code: " + code + "\nSignal: " + signal
}

// startCode returns the exit code of a program that could not be started: the
// negated system error number, as in Node.js.
func startCode(err error) string {
	const noEntry, noAccess = "-2", "-13"
	var number syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noEntry
	case errors.Is(err, fs.ErrPermission):
		return noAccess
	case errors.As(err, &number):
		return strconv.Itoa(-int(number))
	}
	return "(none)"
}
