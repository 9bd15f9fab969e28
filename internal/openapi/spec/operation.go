package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// Operation is an operation of a document as a tool. Its fields are plain data, which
// [Encode] writes and [Decode] reads.
type Operation struct {
	Name        string   // operationId, else method and path; unique in the document
	ID          string   // operationId; may be empty
	Method      string   // in upper case
	Path        string   // with the names of params in braces
	Server      string   // address of its requests without a trailing slash; "" with a Problem
	Tags        []string // as the document says
	Summary     string   // may be empty
	Description string   // never empty
	Deprecated  bool

	// Problem is why the operation cannot be used; nil if it can.
	Problem *document.Problem

	// Input is the JSON Schema of the params. Output is that of the results, whatever their status;
	// nil if there is none.
	Input, Output json.RawMessage

	Plan Plan

	plan []byte // Plan as Encode wrote it, if Load has not been called yet
}

// Plan says how to make a request from params and how to read its response.
type Plan struct {
	Params []Param  `json:"params,omitempty"`
	Body   *Body    `json:"body,omitempty"`
	Accept []string `json:"accept,omitempty"` // media types of the responses, JSON first
	// Outputs are the kinds of responses that Output describes.
	Outputs []Output `json:"outputs,omitempty"`
}

// Output is a kind of responses with a schema.
type Output struct {
	Status string `json:"status"` // a code, a class such as 2XX, or default
	// Branch is the index, from 1, of their schema in the anyOf of Output. 0 means the whole
	// Output.
	Branch int `json:"branch,omitempty"`
	// Wrap is the property that holds a response that is not an object: "items" or "value"; "" for
	// an object.
	Wrap string `json:"wrap,omitempty"`
}

// OutputOf returns the kind of responses that matches a status most precisely; nil if the document
// describes none.
func (p *Plan) OutputOf(status int) *Output {
	code := strconv.Itoa(status)
	for _, name := range []string{code, code[:1] + "XX", "default"} {
		if i := slices.IndexFunc(p.Outputs, func(o Output) bool { return strings.EqualFold(o.Status, name) }); i >= 0 {
			return &p.Outputs[i]
		}
	}
	return nil
}

// OutputSchema returns the schema of a kind of responses.
func (o *Operation) OutputSchema(kind *Output) json.RawMessage {
	if kind.Branch == 0 {
		return o.Output
	}
	branches, _ := jsonx.Elements(jsonx.Get(o.Output, "anyOf"))
	if kind.Branch > len(branches) {
		return nil
	}
	schema := bytes.Clone(branches[kind.Branch-1])
	if defs := jsonx.Get(o.Output, "$defs"); defs != nil { // an object schema is never empty: it has a type
		schema = append(append(append(schema[:len(schema)-1], `,"$defs":`...), defs...), '}')
	}
	return schema
}

// Places of params, in the order in which their names are assigned.
const (
	inPath   = "path"
	inQuery  = "query"
	inHeader = "header"
	inCookie = "cookie"

	// Only in Swagger 2.0.
	inFormData = "formData"
	inBody     = "body"
)

// Param is a param outside the body.
type Param struct {
	Name     string `json:"name"`           // among the tool's params
	Wire     string `json:"wire,omitempty"` // in the request, if it differs
	In       string `json:"in"`
	Style    string `json:"style,omitempty"` // if it is not the default for its place
	Explode  bool   `json:"explode,omitempty"`
	Reserved bool   `json:"reserved,omitempty"` // reserved characters are not encoded
	JSON     bool   `json:"json,omitempty"`     // the value is sent as JSON
}

func (p *Param) wire() string {
	return cmp.Or(p.Wire, p.Name)
}

// The kinds of bodies, best first.
const (
	kindJSON = iota
	kindForm
	kindMultipart
	kindText
	kindBytes
)

// Body says how to make the body of a request.
type Body struct {
	Type     string   `json:"type"` // media type
	Kind     int      `json:"kind"`
	Param    string   `json:"param,omitempty"` // the param that is the whole body; "" if members of the body are params
	Required bool     `json:"required,omitempty"`
	Members  []Member `json:"members,omitempty"` // params that are members
	Needs    []string `json:"needs,omitempty"`   // members that a body must have if it is sent
	Rest     bool     `json:"rest,omitempty"`    // additional params become members too
	Fields   []Field  `json:"fields,omitempty"`  // members of a form that are not sent in the default way
	Base64   bool     `json:"base64,omitempty"`  // the bytes are sent as base64
}

// kindOf returns the kind of body for a media type.
func kindOf(media string) int {
	media = mediaType(media)
	switch {
	case media == "application/json" || strings.HasSuffix(media, "+json") ||
		strings.HasSuffix(media, "/json") || media == "*/*" || media == "application/*":
		return kindJSON
	case media == "application/x-www-form-urlencoded":
		return kindForm
	case media == "multipart/form-data":
		return kindMultipart
	case strings.HasPrefix(media, "text/"), strings.HasSuffix(media, "/xml"),
		strings.HasSuffix(media, "+xml"), strings.HasSuffix(media, "yaml"), strings.HasSuffix(media, "javascript"),
		strings.HasSuffix(media, "ndjson"), strings.HasSuffix(media, "jsonl"),
		media == "application/graphql", media == "application/sql":
		return kindText
	}
	return kindBytes
}

// IsJSON reports whether a media type is JSON.
func IsJSON(media string) bool { return kindOf(media) == kindJSON && !strings.Contains(media, "*") }

// IsText reports whether a media type is text other than JSON.
func IsText(media string) bool { return kindOf(media) == kindText || kindOf(media) == kindForm }

// isMedia reports whether a media type can be sent in a header.
func isMedia(media string) bool {
	return strings.Contains(media, "/") &&
		!strings.ContainsFunc(media, func(r rune) bool { return r < ' ' || r >= 0x7f })
}

// mediaType returns a media type without its parameters, in lower case.
func mediaType(media string) string {
	plain, _, _ := strings.Cut(media, ";")
	return strings.ToLower(strings.TrimSpace(plain))
}

// sendable returns the type to send for a media type of the document. For a file it may be a
// range, within which the file's own type is sent.
func sendable(media string, kind int) string {
	switch {
	case !strings.Contains(media, "*"), kind == kindBytes:
		return media
	case kind == kindText:
		return "text/plain"
	}
	return "application/json"
}

// Member is a param that is a member of the body.
type Member struct {
	Param string `json:"param"`
	Name  string `json:"name,omitempty"` // in the body, if it differs
}

// Field is how a member of a form is sent.
type Field struct {
	Name     string `json:"name"`
	File     bool   `json:"file,omitempty"`
	Type     string `json:"type,omitempty"`
	Style    string `json:"style,omitempty"` // "" means form, and JSON for objects
	Explode  bool   `json:"explode,omitempty"`
	Reserved bool   `json:"reserved,omitempty"`
}

// field returns how a member of a form is sent.
func (b *Body) field(name string) Field {
	if i := slices.IndexFunc(b.Fields, func(f Field) bool { return f.Name == name }); i >= 0 {
		return b.Fields[i]
	}
	return Field{Name: name, Explode: true}
}

// pointer returns the pointer in the params of a member of the body.
func (b *Body) pointer(name string) string {
	if b.Param != "" {
		return "/" + jsonx.EscapeToken(b.Param) + "/" + jsonx.EscapeToken(name)
	}
	if i := slices.IndexFunc(b.Members, func(m Member) bool { return m.Name == name }); i >= 0 {
		name = b.Members[i].Param
	}
	return "/" + jsonx.EscapeToken(name)
}

const readOnly = `{"readOnlyHint":true,"openWorldHint":true}`

// Annotations returns the hints of the operation, which follow from its method.
func (o *Operation) Annotations() json.RawMessage {
	switch {
	case o.Method == "GET" || o.Method == "HEAD":
		return json.RawMessage(readOnly)
	case o.Method == "DELETE":
		return json.RawMessage(
			`{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":true,"openWorldHint":true}`)
	case o.Method == "PUT":
		return json.RawMessage(`{"readOnlyHint":false,"idempotentHint":true,"openWorldHint":true}`)
	}
	return json.RawMessage(`{"readOnlyHint":false,"openWorldHint":true}`)
}

// isUsable reports whether an operationId contains a character that names of tools may have.
func isUsable(id string) bool {
	return strings.ContainsFunc(id,
		func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' })
}

// nameOf returns the name of an operation without a usable operationId.
func nameOf(method, path string) string {
	words := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/{}", r) })
	return strings.Join(append([]string{strings.ToLower(method)}, words...), "_")
}
