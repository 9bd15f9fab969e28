package discover

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
)

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
			printed(stdout, len(stdout), int64(len(stdout))))
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
	if present(in.LLMContent) {
		if out.Content, err = registry.ParseContent(in.LLMContent); err != nil {
			return out, fmt.Errorf("its llmContent: %w", err)
		}
	}
	if out.Display, err = readDisplay(in.ReturnDisplay); err != nil {
		return out, err
	}
	for name, raw := range map[string]json.RawMessage{"structuredContent": in.Structured, "metadata": in.Metadata} {
		if present(raw) && raw[0] != '{' {
			return out, fmt.Errorf("its %s is not an object", name)
		}
	}
	if present(in.Structured) {
		out.Structured = in.Structured
	}
	if present(in.Metadata) {
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
	if !present(raw) {
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
		r := registry.TextResult(printed(o.Stdout, o.StdoutHead, o.StdoutBytes))
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

// printed returns a program's output as text, or a description of output that is
// not text.
func printed(kept []byte, head int, total int64) string {
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
			place(violations[0].Pointer), violations[0].Message)
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
