package document

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Kind is what a node is. The names are those of JSON.
type Kind int

// The kinds of a [Node].
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Object
)

// String returns the word for a kind.
func (k Kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "list", "object"}[k]
}

// Node is one value of a document, the same for YAML and JSON. The zero value
// is null.
type Node struct {
	Kind   Kind
	Text   string // of a string; the literal of a number
	Bool   bool
	Items  []*Node // of a list
	Fields []Field // of an object, in file order
	Line   int     // from 1
	Col    int     // from 1, in characters

	Problems []Problem // problems with this value and those below it, if the document was read despite them
}

// Field is one member of an object.
type Field struct {
	Name      string // as written; case and dots are significant
	Line, Col int    // of the name
	Value     *Node  // never nil
}

// NewString returns a text without a position.
func NewString(s string) *Node { return &Node{Kind: String, Text: s} }

// NewStrings returns a list of texts without positions.
func NewStrings(list []string) *Node {
	out := &Node{Kind: List}
	for _, s := range list {
		out.Items = append(out.Items, NewString(s))
	}
	return out
}

// Get returns the value of a member, or nil. It may be called on nil.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	for i := range n.Fields {
		if n.Fields[i].Name == name {
			return n.Fields[i].Value
		}
	}
	return nil
}

// Str returns the text of a string, "" for anything else and for nil.
func (n *Node) Str() string {
	if n == nil || n.Kind != String {
		return ""
	}
	return n.Text
}

// True reports whether the value is the boolean true. It may be called on nil.
func (n *Node) True() bool { return n != nil && n.Kind == Bool && n.Bool }

// Strings returns the strings of a list, skipping other values. It may be
// called on nil.
func (n *Node) Strings() []string {
	if n == nil {
		return nil
	}
	var out []string
	for _, item := range n.Items {
		if item.Kind == String {
			out = append(out, item.Text)
		}
	}
	return out
}

// Walk calls visit with every value from n downwards and its dotted key, which
// begins with key: a.b for members, a[0] for elements.
func (n *Node) Walk(key string, visit func(key string, n *Node)) {
	visit(key, n)
	for i, item := range n.Items {
		item.Walk(key+"["+strconv.Itoa(i)+"]", visit)
	}
	for _, f := range n.Fields {
		name := f.Name
		if key != "" {
			name = key + "." + name
		}
		f.Value.Walk(name, visit)
	}
}

// Clone copies a value deeply.
func (n *Node) Clone() *Node {
	out := *n
	out.Items, out.Fields = slices.Clone(n.Items), slices.Clone(n.Fields)
	for i := range out.Items {
		out.Items[i] = out.Items[i].Clone()
	}
	for i := range out.Fields {
		out.Fields[i].Value = out.Fields[i].Value.Clone()
	}
	return &out
}

// SetPlace gives a value and everything below it one position.
func (n *Node) SetPlace(line, col int) {
	n.Line, n.Col = line, col
	for _, item := range n.Items {
		item.SetPlace(line, col)
	}
	for i := range n.Fields {
		n.Fields[i].Line, n.Fields[i].Col = line, col
		n.Fields[i].Value.SetPlace(line, col)
	}
}

// Locate returns the position of the value that a JSON pointer names, or of the
// nearest enclosing value. A member's position is that of its name.
func (n *Node) Locate(pointer string) (line, col int) {
	line, col = n.Line, n.Col
	for token := range jsonx.Tokens(pointer) {
		var next *Node
		for _, f := range n.Fields {
			if f.Name == token {
				next, line, col = f.Value, f.Line, f.Col
			}
		}
		if i := jsonx.Index(token, len(n.Items)); i >= 0 {
			next = n.Items[i]
			line, col = next.Line, next.Col
		}
		if next == nil {
			break
		}
		n = next
	}
	return line, col
}

// Encode renders the value as compact JSON: members in file order, numbers as
// written, nothing escaped for HTML.
func (n *Node) Encode() json.RawMessage { return n.appendTo(nil) }

func (n *Node) appendTo(out []byte) []byte {
	switch n.Kind {
	case Bool:
		return strconv.AppendBool(out, n.Bool)
	case Number:
		if !IsNumber(n.Text) { // rejected; the rest remains valid JSON
			return jsonx.AppendQuote(out, n.Text)
		}
		return append(out, n.Text...)
	case String:
		return jsonx.AppendQuote(out, n.Text)
	case List:
		out = append(out, '[')
		for i, item := range n.Items {
			if i > 0 {
				out = append(out, ',')
			}
			out = item.appendTo(out)
		}
		return append(out, ']')
	case Object:
		out = append(out, '{')
		for i, f := range n.Fields {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(jsonx.AppendQuote(out, f.Name), ':')
			out = f.Value.appendTo(out)
		}
		return append(out, '}')
	}
	return append(out, "null"...)
}
