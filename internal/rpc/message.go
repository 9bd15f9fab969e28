package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// maxLine is the maximum length of a message in bytes, in both directions.
const maxLine = 32 << 20

// The codes of errors. CodeFailed means that a request could not be fulfilled; its data says why.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeUnknownMethod  = -32601
	CodeInvalidParams  = -32602
	CodeFailed         = -32000
	CodeCancelled      = -32800
)

// Error is the error of an answer.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

func invalid(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}

// message is a line from the host. Absent members are nil.
type message struct {
	id, method, params, result, failure json.RawMessage
}

var null = json.RawMessage("null")

// parse reads a line. If it returns an error, the message has the id for the answer.
func parse(line []byte) (message, *Error) {
	m := message{id: null}
	if !jsonx.Valid(line) {
		return m, &Error{Code: CodeParse, Message: "the line is not JSON"}
	}
	if jsonx.KindOf(line) != jsonx.Object {
		return m, invalid("the line is not an object")
	}
	version, known := "", map[string]*json.RawMessage{
		"id":     &m.id,
		"method": &m.method,
		"params": &m.params,
		"result": &m.result,
		"error":  &m.failure,
	}
	m.id = nil
	var twice string
	for name, value := range jsonx.Members(line) {
		if name == "jsonrpc" {
			version, _ = jsonx.Text(value)
		} else if field := known[name]; field != nil {
			if *field != nil {
				twice = name
			}
			*field = bytes.Clone(value)
		}
	}
	switch kind := jsonx.KindOf(m.id); {
	case m.id != nil && kind != jsonx.String && kind != jsonx.Number:
		m.id = null
		return m, invalid("the id must be a string or a number")
	case twice != "":
		return m, invalid("the member %q is given twice", twice)
	case version != "2.0":
		return m, invalid(`the member "jsonrpc" must be "2.0"`)
	case m.method == nil && m.result == nil && m.failure == nil:
		return m, invalid(`the message has neither "method" nor "result" nor "error"`)
	}
	return m, nil
}

// answer is the line that answers a request.
type answer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// call is a line that asks or tells the host something.
type call struct {
	Version string `json:"jsonrpc"`
	ID      string `json:"id,omitempty"` // "" means a notification
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

const version = "2.0"

var errLong = errors.New("the message would be longer than the limit of 32 MiB")

// encode returns the line of a message. Invisible characters in it are escaped.
func encode(v any) ([]byte, error) {
	data, err := jsonx.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding a message: %w", err)
	}
	data = text.EscapeJSON(data)
	if len(data) >= maxLine {
		return nil, errLong
	}
	return append(data, '\n'), nil
}

// encodeAnswer returns the line of an answer, or of an error if the answer cannot be sent.
func encodeAnswer(a answer) []byte {
	a.Version = version
	if a.ID == nil {
		a.ID = null
	}
	line, err := encode(a)
	if err != nil {
		// an id and texts: cannot fail
		line, _ = encode(answer{
			Version: version, ID: a.ID,
			Error: &Error{Code: CodeFailed,
				Message: "the request was carried out, but its result cannot be sent: " + err.Error()},
		})
	}
	return line
}

// Method is a request that a host may make. Create it with [NewMethod].
type Method struct {
	Name string
	// Params and Result are the types of its messages.
	Params, Result reflect.Type
	// Calls is set if the method calls tools: it then has a place in the line of calls, which it
	// leaves with [Request.Leave], and is canceled at the end of the input.
	Calls bool
	// Arrive is called when the request arrives, before any later one is read. It returns the value
	// of [Request.Arrived], and a function to call when the request is over. May be nil.
	Arrive func() (arrived any, over func())

	run func(context.Context, *Request, json.RawMessage) (any, error)
}

// NewMethod returns a method that is carried out by run. The params must be a struct; members
// without omitempty or omitzero are required, and unknown members are refused. An error that is an
// [*Error] becomes the answer; other errors are described by the server's Options.ErrorData.
func NewMethod[P, R any](name string, run func(context.Context, *Request, P) (R, error)) Method {
	known := members(reflect.TypeFor[P]())
	return Method{
		Name: name, Params: reflect.TypeFor[P](), Result: reflect.TypeFor[R](),
		run: func(ctx context.Context, r *Request, raw json.RawMessage) (any, error) {
			var params P
			if err := decode(raw, known, &params); err != nil {
				return nil, &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("params of %s: %s", name, err)}
			}
			return run(ctx, r, params)
		},
	}
}

// decode decodes an object into a struct with these members, whose names must be exact.
func decode(raw json.RawMessage, known map[string]bool, v any) error {
	if jsonx.IsNull(raw) || jsonx.IsEmptyList(raw) { // PHP writes an empty object as a list
		raw = json.RawMessage("{}")
	}
	if kind := jsonx.KindOf(raw); kind != jsonx.Object {
		return fmt.Errorf("must be an object, not %s", kind)
	}
	var given []string
	for name := range jsonx.Members(raw) {
		switch _, ok := known[name]; {
		case !ok:
			return fmt.Errorf("unknown member %q", name)
		case slices.Contains(given, name):
			return fmt.Errorf("the member %q is given twice", name)
		}
		given = append(given, name)
	}
	for name, required := range known {
		if required && !slices.Contains(given, name) {
			return fmt.Errorf("the member %q is missing", name)
		}
	}
	return jsonx.Unmarshal(raw, v)
}

// members maps the names of a struct's members to whether each is required.
func members(t reflect.Type) map[string]bool {
	all := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && f.IsExported() {
			all[name] = !strings.Contains(options, "omit")
		}
	}
	return all
}
