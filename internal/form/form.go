// Package form parses the flat JSON schema of a question that an MCP server asks a person
// (elicitation in form mode, revision 2025-11-25) and converts what the person types to
// values that match it. The schema is untrusted: references, nesting and excessive size
// are rejected before anything is asked. Package mcpclient parses the schema, and package
// ui asks. [Params] creates the form for missing params of a tool.
package form

import (
	"encoding/json"
	"regexp"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Limits on a form.
const (
	maxSchema  = 256 << 10 // bytes of a schema
	maxFields  = 100       // fields of a form
	maxOptions = 200       // options of one field
	maxDepth   = 20        // of a schema, which the protocol requires to be flat
	maxTitle   = 200       // maximum bytes of a title
	maxText    = 1000      // maximum bytes of a description
)

// Kind is the kind of values that a field accepts.
type Kind string

// The kinds of a field.
const (
	Text    Kind = "text"
	Number  Kind = "number"
	Integer Kind = "integer"
	Boolean Kind = "boolean"
	Choice  Kind = "choice"  // one of Options
	Choices Kind = "choices" // any of Options
	List    Kind = "list"    // any number of Item; only in params
	JSON    Kind = "json"    // any JSON; only in params
)

// Option is one of the values that a field offers.
type Option struct {
	Value string
	Title string // "" means only the value
}

// Field is one field of a form. Texts are the server's words, unchanged.
type Field struct {
	Name        string
	Title       string // "" means none
	Description string // "" means none
	Kind        Kind
	Required    bool
	Secret      bool            // what is typed is not shown
	Default     json.RawMessage // fits the field; nil means none

	Format           string         // of Text: "", email, uri, date or date-time
	Pattern          string         // of Text, "" means none
	pattern          *regexp.Regexp // nil if Pattern is not valid in RE2: then the server checks it
	Least, Most      *int           // characters of Text, items of Choices
	Minimum, Maximum *float64       // of Number and Integer
	Options          []Option       // of Choice and Choices
	Item             *Field         // of List
	Nested           []string       // of JSON: what is in it, such as "[].name  string"; may be empty
	Example          string         // of JSON; "" means none
}

// Form is a question with fields. One without fields asks only for yes or no.
type Form struct {
	Fields []Field // in the order of the schema

	// Schema is the schema of the question in the protocol's notation, against which clients check.
	// It differs from the given one if that marks optional values, or text choices, in another way.
	Schema json.RawMessage
}

// Encode returns the content of an answer: the values by the names of fields,
// in the form's order. Fields without a value are omitted.
func (f *Form) Encode(values map[string]json.RawMessage) json.RawMessage {
	out := []byte("{")
	for _, field := range f.Fields {
		value := values[field.Name]
		if value == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsonx.AppendQuote(out, field.Name), ':'), value...)
	}
	return append(out, '}')
}

// Label returns the field's title followed by its name, or only the name.
func (f *Field) Label() string {
	if f.Title == "" || f.Title == f.Name {
		return f.Name
	}
	return f.Title + " (" + f.Name + ")"
}

// Label returns the option's title followed by its value, or only the value.
func (o Option) Label() string {
	if o.Title == "" || o.Title == o.Value {
		return o.Value
	}
	return o.Title + " (" + o.Value + ")"
}
