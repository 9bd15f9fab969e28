// Package form reads the flat JSON schema of a question that an MCP server puts
// to a person (elicitation in form mode, revision 2025-11-25) and turns what the
// person types into values that fit it. The schema comes from the server and is
// not trusted: references, nesting and size are refused before anything is
// asked. internal/mcpclient parses, internal/terminal asks. [Params] makes the form
// for params of a tool that a call lacks.
package form

import (
	"bytes"
	"encoding/json"
	"regexp"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Limits of what a person can be asked to fill in.
const (
	MaxSchema  = 256 << 10 // bytes of a schema
	MaxFields  = 100       // fields of a form
	MaxOptions = 200       // options of one field
	maxDepth   = 20        // of a schema, which is flat by the protocol's rules
	maxTitle   = 200       // bytes of a title that are kept
	maxText    = 1000      // bytes of a description that are kept
)

// Kind is what a field takes.
type Kind string

// The kinds of a field.
const (
	Text    Kind = "text"
	Number  Kind = "number"
	Integer Kind = "integer"
	Boolean Kind = "boolean"
	Choice  Kind = "choice"  // one of Options
	Choices Kind = "choices" // any of Options
	List    Kind = "list"    // any number of Item; of params alone
	JSON    Kind = "json"    // any JSON; of params alone
)

// Option is one of the values that a field offers.
type Option struct {
	Value string
	Title string // "" = none but the value itself
}

// Field is one field of a form. Texts are the server's words as they came.
type Field struct {
	Name        string
	Title       string // "" = none
	Description string // "" = none
	Kind        Kind
	Required    bool
	Default     json.RawMessage // fits the field; nil = none

	Format           string         // of Text: "", email, uri, date or date-time
	Pattern          string         // of Text, "" = none
	pattern          *regexp.Regexp // nil where Pattern is no RE2: the server checks it
	Least, Most      *int           // characters of Text, items of Choices
	Minimum, Maximum *float64       // of Number and Integer
	Options          []Option       // of Choice and Choices
	Item             *Field         // of List
}

// Form is a question with fields. One without fields wants a yes or no alone.
type Form struct {
	Fields []Field // in the order of the schema
}

// Encode returns the content of an answer: the values by the names of fields, in
// the form's order. Fields without a value are left out.
func (f *Form) Encode(values map[string]json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, field := range f.Fields {
		value := values[field.Name]
		if value == nil {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(jsonx.Quote(field.Name))
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Label is what a person calls the field: its title with the name behind it, or
// the name alone.
func (f *Field) Label() string {
	if f.Title == "" || f.Title == f.Name {
		return f.Name
	}
	return f.Title + " (" + f.Name + ")"
}

// Label is what a person calls the option: its title with the value behind it,
// or the value alone.
func (o Option) Label() string {
	if o.Title == "" || o.Title == o.Value {
		return o.Value
	}
	return o.Title + " (" + o.Value + ")"
}
