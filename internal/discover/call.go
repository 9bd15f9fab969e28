package discover

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
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
	return "Stdout: " + cmp.Or(outputText(o.Stdout, o.StdoutHead, o.StdoutBytes), "(empty)") +
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

// printedResult is the output of a tool with "output: result".
type printedResult struct {
	Summary       string              `json:"summary"`
	LLMContent    json.RawMessage     `json:"llmContent"`
	ReturnDisplay json.RawMessage     `json:"returnDisplay"`
	IsError       bool                `json:"isError"`
	Structured    json.RawMessage     `json:"structuredContent"`
	Locations     []registry.Location `json:"locations"`
	Metadata      json.RawMessage     `json:"metadata"`
}

// wholeResult parses the result that a tool printed. Relative locations are
// resolved from root. schema validates structuredContent; it may be nil. Invalid
// output becomes a failed result that contains everything that was printed.
func wholeResult(ctx context.Context, stdout []byte, root string, schema json.RawMessage) registry.Result {
	in, err := readPrinted(trim(stdout))
	var out registry.Result
	if err == nil {
		out, err = in.result(root)
	}
	if err != nil {
		return refusedOutput(
			registry.Ran+"the tool declares output: result, and its output is not a result: "+err.Error(),
			outputText(stdout, len(stdout), int64(len(stdout))))
	}
	if len(schema) > 0 && !out.IsError {
		return structured(ctx, schema, in.Structured, out)
	}
	return out
}

func readPrinted(data []byte) (in printedResult, err error) {
	if err := registry.CheckJSON(data); err != nil {
		return in, err
	}
	if data[0] != '{' {
		return in, errors.New("it is not an object")
	}
	err = jsonx.DecodeKnown(data, &in)
	return in, err
}

func refusedOutput(why, printed string) registry.Result {
	r := registry.ErrorResult(registry.ErrorExecution, why+"\n\n"+printed)
	r.Summary = why
	return r
}

func (in *printedResult) result(root string) (registry.Result, error) {
	out := registry.Result{Summary: in.Summary, IsError: in.IsError}
	if out.IsError {
		out.ErrorCategory = registry.ErrorExecution
	}
	var err error
	if isPresent(in.LLMContent) {
		if out.Content, err = registry.ParseContent(in.LLMContent); err != nil {
			return out, fmt.Errorf("its llmContent: %w", err)
		}
	}
	if out.Display, err = readDisplay(in.ReturnDisplay); err != nil {
		return out, err
	}
	for name, raw := range map[string]json.RawMessage{"structuredContent": in.Structured, "metadata": in.Metadata} {
		if isPresent(raw) && raw[0] != '{' {
			return out, fmt.Errorf("its %s is not an object", name)
		}
	}
	if isPresent(in.Structured) {
		out.Structured = in.Structured
	}
	if isPresent(in.Metadata) {
		out.Meta = in.Metadata
	}
	for _, l := range in.Locations {
		if l.Path == "" || l.Line < 0 {
			return out, errors.New("a location takes path and, from 1, line")
		}
		l.Path = expand.From(root, filepath.FromSlash(l.Path))
		out.Locations = append(out.Locations, l)
	}
	return out, nil
}

func readDisplay(raw json.RawMessage) (d registry.Display, err error) {
	if !isPresent(raw) {
		return d, nil
	}
	switch raw[0] {
	case '{':
		d.Diff = &registry.FileDiff{}
		err = jsonx.DecodeKnown(raw, d.Diff)
	case '[':
		err = jsonx.DecodeKnown(raw, &d.Todos)
	default:
		err = json.Unmarshal(raw, &d.Text)
	}
	if err != nil {
		return d, errors.New("its returnDisplay is not a string, a diff (fileDiff, fileName, originalContent, newContent) or a todo list (id, content, status, priority)")
	}
	return d, nil
}

// textResult returns the result of a tool that prints text or one part of
// another type.
func textResult(o process.Outcome, tool string) registry.Result {
	mime := mediaType(o.Stdout)
	if mime == "" || o.Truncated {
		r := registry.TextResult(outputText(o.Stdout, o.StdoutHead, o.StdoutBytes))
		r.Truncated = o.Truncated
		return r
	}
	c := registry.Media(o.Stdout, mime, "toolreg://"+tool+"/stdout")
	return registry.Result{Content: []registry.Content{c}, Summary: binaryNote(mime, int64(len(o.Stdout)))}
}

func binaryNote(mime string, size int64) string {
	return fmt.Sprintf("[%s, %d bytes]", mime, size)
}

// mediaType returns the media type of binary data, or "" for text and unknown
// types. Data without a NUL byte is text, even if it begins like an image.
func mediaType(data []byte) string {
	if bytes.HasPrefix(data, []byte("%PDF-")) {
		return "application/pdf"
	}
	if bytes.IndexByte(data, 0) < 0 {
		return ""
	}
	mime, _, _ := strings.Cut(http.DetectContentType(data), ";")
	if mime == "application/octet-stream" || strings.HasPrefix(mime, "text/") {
		mime = ""
	}
	return cmp.Or(registry.Sniff(data), mime)
}

// outputText returns a program's output as text, or a description of output that is
// not text.
func outputText(kept []byte, head int, total int64) string {
	if mime := mediaType(kept); mime != "" {
		return binaryNote(mime, max(total, int64(len(kept))))
	}
	return cutText(kept, head, total)
}

// structured checks a tool's output against the output schema that it declares.
func structured(ctx context.Context, schema json.RawMessage, stdout []byte, result registry.Result) registry.Result {
	output := registry.NewOutputValidator(schema)
	if !output.Judges(ctx) {
		return result
	}
	doc := trim(stdout)
	refused := func(format string, args ...any) registry.Result {
		return refusedOutput(registry.Ran+fmt.Sprintf(format, args...), result.Text())
	}
	if err := registry.CheckJSON(doc); err != nil {
		return refused("the tool, which has an outputSchema, did not print a JSON object: %s", err)
	}
	if doc[0] != '{' {
		return refused("the tool, which has an outputSchema, printed %s, not a JSON object", jsonx.KindOf(doc))
	}
	if violations, err := output.Validate(ctx, doc); err == nil && len(violations) > 0 {
		return refused("the tool's output does not match its outputSchema: %s%s",
			placeOf(violations[0].Pointer), violations[0].Message)
	}
	result.Structured = doc
	return result
}

// cutText returns the text of a stream of total bytes. If it was cut, kept has its
// first head bytes and its end.
func cutText(kept []byte, head int, total int64) string {
	missing := total - int64(len(kept))
	if missing <= 0 || head >= len(kept) {
		return decode(kept)
	}
	return decode(kept[:head]) + fmt.Sprintf("\n[… %d of %d bytes cut here …]\n", missing, total) + decode(kept[head:])
}
