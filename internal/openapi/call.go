package openapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/openapi/spec"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// maxErrorBody is how much of the body of an error response is shown, in bytes.
const maxErrorBody = 4 << 10

// maxViolations is how many mistakes of one response are named.
const maxViolations = 3

// operation makes the calls of one operation.
type operation struct {
	opts   *Options
	client *client
	op     *spec.Operation

	loading sync.Once
	loadErr error
	outputs map[int]*registry.Validator // by the branch of the kind of responses
}

// load reads the plan and the schemas, which calls need and listings do not.
func (o *operation) load() {
	if o.loadErr = o.op.Load(); o.loadErr != nil {
		return
	}
	o.outputs = map[int]*registry.Validator{}
	for _, kind := range o.op.Plan.Outputs {
		if o.outputs[kind.Branch] == nil {
			o.outputs[kind.Branch] = registry.NewOutputValidator(o.op.OutputSchema(&kind))
		}
	}
}

func (o *operation) checkParams(_ context.Context, call registry.Call) error {
	_, err := o.request(call, func(pointer, name string) (spec.File, error) {
		if isDataURI(name) {
			return dataURI(pointer, name)
		}
		if o.opts.Paths == nil {
			return spec.File{}, noFiles(call, pointer)
		}
		if _, err := o.opts.Paths(name); err != nil {
			return spec.File{}, registry.Invalid(call.Tool, pointer, "%v", err)
		}
		return spec.File{}, nil
	})
	return err
}

// preview returns the request that a call would send, without credentials.
func (o *operation) preview(_ context.Context, call registry.Call) (registry.Preview, error) {
	address := o.op.Path
	r, err := o.request(call, func(_, _ string) (spec.File, error) { return spec.File{}, nil })
	if err == nil {
		address = r.URL
	}
	return registry.Preview{Kind: registry.PreviewMCP,
		Title: fmt.Sprintf("call %s of API %s (%s %s)", text.Quote(o.op.Name),
			text.Quote(o.opts.API.Name), o.op.Method, o.client.hide(text.Quote(address)))}, nil
}

// subject returns the files that a call would read.
func (o *operation) subject(call registry.Call) (registry.Subject, error) {
	var out registry.Subject
	_, err := o.request(call, func(_, name string) (spec.File, error) {
		if isDataURI(name) || o.opts.Paths == nil {
			return spec.File{}, nil
		}
		paths, err := o.opts.Paths(name)
		out.Paths = append(out.Paths, paths...)
		return spec.File{}, err
	})
	if _, ok := errors.AsType[*registry.ArgsError](err); ok {
		err = nil // the check reports it
	}
	return out, err
}

func (o *operation) request(call registry.Call,
	files func(pointer, name string) (spec.File, error)) (*spec.Request, error) {
	o.loading.Do(o.load)
	if o.loadErr != nil {
		return nil, failure(o.opts.API.Name, o.client, o.loadErr)
	}
	r, err := o.op.Request(call.Params, files)
	if wrong, ok := errors.AsType[*registry.ArgsError](err); ok { // without the name of the tool
		err = &registry.ArgsError{Tool: call.Tool, Violations: wrong.Violations}
	}
	return r, err
}

// file returns the file that a param names.
func (o *operation) file(call registry.Call, pointer, name string) (spec.File, error) {
	if isDataURI(name) {
		return dataURI(pointer, name)
	}
	if o.opts.Files == nil {
		return spec.File{}, noFiles(call, pointer)
	}
	media, data, err := o.opts.Files(call, pointer, name)
	return spec.File{Name: filepath.Base(name), Type: media, Data: data}, err
}

func noFiles(call registry.Call, pointer string) error {
	return registry.Invalid(call.Tool, pointer, "must be a data: URI, because files of the workspace cannot be read")
}

func isDataURI(name string) bool { return strings.HasPrefix(name, "data:") }

// dataURI returns the file in a data: URI, whose name may be in its parameter name.
func dataURI(pointer, uri string) (spec.File, error) {
	head, body, found := strings.Cut(strings.TrimPrefix(uri, "data:"), ",")
	head, isBase64 := strings.CutSuffix(head, ";base64")
	out := spec.File{Name: "file", Type: "text/plain"}
	if kind, params, err := mime.ParseMediaType(head); err == nil {
		out.Type = kind
		if name, err := url.PathUnescape(params["name"]); err == nil && name != "" {
			out.Name = filepath.Base(name)
		}
	}
	plain, err := url.PathUnescape(body)
	switch {
	case !found || err != nil:
		return out, registry.Invalid("", pointer, "a data: URI is data:TYPE;base64,CONTENT")
	case !isBase64:
		out.Data = []byte(plain)
		return out, nil
	}
	if out.Data, err = base64.StdEncoding.DecodeString(strings.TrimSpace(plain)); err != nil {
		err = registry.Invalid("", pointer, "the content of the data: URI is not base64")
	}
	return out, err
}

func (o *operation) run(ctx context.Context, call registry.Call) (registry.Result, error) {
	start := time.Now()
	request, err := o.request(call,
		func(pointer, name string) (spec.File, error) { return o.file(call, pointer, name) })
	if err != nil {
		return registry.Result{}, err
	}
	var body io.Reader = http.NoBody
	if request.Body != nil {
		body = bytes.NewReader(request.Body)
	}
	var written atomic.Bool
	r, err := http.NewRequestWithContext(webaddr.WhenWritten(ctx, func() { written.Store(true) }),
		request.Method, request.URL, body)
	if err != nil {
		return registry.Result{}, failure(o.opts.API.Name, o.client, err)
	}
	r.Header = request.Header
	resp, err := o.client.http.Do(r)
	if err != nil {
		return o.failed(ctx, start, err, written.Load())
	}
	defer resp.Body.Close()
	limit := o.opts.Limits.Result
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return o.failed(ctx, start, err, true)
	}
	cut := int64(len(data)) > limit
	if cut {
		data = data[:limit]
	}
	out := o.result(ctx, resp, data, cut)
	if cut {
		out.Truncated = true
		out = out.WithNote(fmt.Sprintf("The response exceeds %d bytes (limits.result); the rest is missing.", limit))
	}
	return out, nil
}

// failed returns the outcome of a call without a response; sent reports that the API may have got it.
func (o *operation) failed(ctx context.Context, start time.Time, err error, sent bool) (registry.Result, error) {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return registry.ErrorResult(registry.ErrorTimeout,
			fmt.Sprintf("API %q: no answer to %s within %s",
				o.opts.API.Name, o.op.Name, time.Since(start).Round(time.Millisecond))), nil
	case ctx.Err() != nil:
		return registry.Result{}, fmt.Errorf("calling %q of API %q: %w",
			o.op.Name, o.opts.API.Name, context.Cause(ctx))
	}
	err = failure(o.opts.API.Name, o.client, err)
	if sent && o.op.Method != http.MethodGet && o.op.Method != http.MethodHead {
		err = unansweredError{err}
	}
	return registry.Result{}, err
}

// unansweredError is the failure of a call that may have had effects.
type unansweredError struct{ error }

func (e unansweredError) Unwrap() error { return e.error }

func (unansweredError) Advice() string {
	return "The API gave no result of the call, which may have had effects, so it was not repeated: check before you repeat it, or continue without the tool."
}

// result converts a response. The credentials of the settings are masked in it.
func (o *operation) result(ctx context.Context, resp *http.Response, body []byte, cut bool) registry.Result {
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || kind == "" {
		kind = mediaOf(body)
	}
	kind = o.client.hide(kind)
	if spec.IsText(kind) || spec.IsJSON(kind) {
		body = []byte(decoded(body, params["charset"]))
	}
	body = o.client.hideIn(body)
	summary := fmt.Sprintf("%s %s returned %d %s",
		o.op.Method, o.op.Path, resp.StatusCode, http.StatusText(resp.StatusCode))
	if resp.StatusCode >= 300 {
		out := registry.ErrorResult(registry.ErrorExecution, o.refusal(resp, kind, body))
		out.Summary = summary
		return out
	}
	out := registry.Result{Summary: summary}
	switch {
	case len(body) == 0:
		said := fmt.Sprintf("The API answered %d %s without content.", resp.StatusCode, http.StatusText(resp.StatusCode))
		for _, name := range []string{"Location", "Operation-Location"} { // of what was created, or goes on
			if value := resp.Header.Get(name); value != "" {
				said += "\n" + name + ": " + text.Quote(o.client.hide(value))
			}
		}
		out.Content = []registry.Content{registry.TextContent(said)}
	case spec.IsJSON(kind) && !cut && jsonx.Check(body, jsonx.Options{}) == nil:
		body = bytes.TrimSpace(body)
		out.Content = []registry.Content{registry.TextContent(string(body))}
		out.Structured = wrapBody(body)
		o.checkOutput(ctx, resp.StatusCode, out.Structured)
	case spec.IsText(kind) || spec.IsJSON(kind):
		out.Content = []registry.Content{registry.TextContent(string(body))}
	default:
		out.Content = []registry.Content{registry.Media(body, kind, o.client.hide(resp.Request.URL.Redacted()))}
	}
	return out
}

func wrapBody(body []byte) []byte {
	switch jsonx.KindOf(body) {
	case jsonx.Object:
		return body
	case jsonx.Array:
		return append(append([]byte(`{"items":`), body...), '}')
	}
	return append(append([]byte(`{"value":`), body...), '}')
}

// checkOutput warns about a response that does not match the schema that the document gives for its
// status.
func (o *operation) checkOutput(ctx context.Context, status int, body []byte) {
	kind := o.op.Plan.OutputOf(status)
	if kind == nil || !o.outputs[kind.Branch].Judges(ctx) {
		return
	}
	violations, err := o.outputs[kind.Branch].Validate(ctx, body)
	if err == nil && len(violations) == 0 {
		return
	}
	if kind.Wrap != "" { // toolreg added the member, so the problem concerns the whole response
		for i := range violations {
			violations[i].Pointer = strings.TrimPrefix(violations[i].Pointer, "/"+kind.Wrap)
		}
		if jsonx.Get(body, kind.Wrap) == nil {
			expected := map[string]string{"items": "a list", "value": "a single value"}[kind.Wrap]
			violations = []registry.Violation{{Message: "it must be " + expected}}
		}
	}
	message := "the response does not match the document: "
	switch more := len(violations) - maxViolations; {
	case err != nil:
		message += err.Error()
	case more > 0:
		message += fmt.Sprintf("%s; and %d more", registry.Describe(violations[:maxViolations]), more)
	default:
		message += registry.Describe(violations)
	}
	o.opts.Warn(registry.Diagnostic{
		Severity: registry.SeverityWarning, Code: "response_misfit", Source: registry.APIPrefix + o.opts.API.Name,
		Tool: o.op.Name, Message: text.Valid(text.Head(message, 1000)),
	})
}

// refusal describes an error response, with the texts of its problem document if it has one (RFC
// 9457).
func (o *operation) refusal(resp *http.Response, kind string, body []byte) string {
	out := fmt.Sprintf("%s %s answered %d %s",
		o.op.Method, o.op.Path, resp.StatusCode, http.StatusText(resp.StatusCode))
	switch {
	case resp.StatusCode < 400 && o.op.Method != http.MethodGet && o.op.Method != http.MethodHead:
		out += ": redirects of requests that change something are not followed; it leads to " +
			text.Quote(o.client.hide(resp.Header.Get("Location")))
	case resp.Header.Get("Retry-After") != "":
		out += "; try again after " + text.Quote(o.client.hide(resp.Header.Get("Retry-After")))
	}
	if kind == "application/problem+json" {
		for _, member := range []string{"title", "detail"} {
			if words, ok := jsonx.Text(jsonx.Get(body, member)); ok && words != "" {
				out += ": " + words
			}
		}
	}
	if head := strings.TrimSpace(text.Valid(text.Head(string(body), maxErrorBody))); head != "" &&
		(spec.IsText(kind) || spec.IsJSON(kind)) {
		out += "\n\n" + head
	}
	return out
}

// mediaOf guesses the media type of a body that was sent without one.
func mediaOf(body []byte) string {
	if jsonx.Check(body, jsonx.Options{}) == nil {
		return "application/json"
	}
	kind, _, _ := mime.ParseMediaType(http.DetectContentType(body))
	return kind
}

// decoded returns text in UTF-8. A byte order mark has priority over the declared charset.
func decoded(body []byte, charset string) string {
	if enc, err := htmlindex.Get(cmp.Or(charset, text.XMLEncoding(body))); err == nil {
		if out, _, err := transform.Bytes(unicode.BOMOverride(enc.NewDecoder()), body); err == nil {
			return text.Valid(string(out))
		}
	}
	return text.Valid(string(text.WithoutMark(body)))
}
