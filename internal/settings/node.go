package settings

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// kind is what a node is. The names are those of JSON.
type kind int

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindObject
)

func (k kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "list", "object"}[k]
}

// node is one value of a settings file, the same for YAML and JSON.
type node struct {
	kind   kind
	text   string // of a string; the literal of a number
	bool   bool
	items  []*node // of a list
	fields []field // of an object, in file order
	line   int     // from 1
	col    int     // from 1, in characters
}

// field is one member of an object.
type field struct {
	name      string // as written: case and dots count
	line, col int
	value     *node
}

// get returns the value of a member, or nil.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.fields {
		if n.fields[i].name == name {
			return n.fields[i].value
		}
	}
	return nil
}

// encode renders the value as compact JSON, members in file order.
func (n *node) encode() json.RawMessage {
	var b bytes.Buffer
	n.write(&b, func(b *bytes.Buffer, s string) { writeString(b, s) })
	return b.Bytes()
}

// write renders the value with str rendering each string value.
func (n *node) write(b *bytes.Buffer, str func(*bytes.Buffer, string)) {
	if n == nil {
		b.WriteString("null")
		return
	}
	switch n.kind {
	case kindNull:
		b.WriteString("null")
	case kindBool:
		b.WriteString(strconv.FormatBool(n.bool))
	case kindNumber:
		b.WriteString(n.text)
	case kindString:
		str(b, n.text)
	case kindList:
		b.WriteByte('[')
		for i, item := range n.items {
			comma(b, i)
			item.write(b, str)
		}
		b.WriteByte(']')
	case kindObject:
		b.WriteByte('{')
		for i, f := range n.fields {
			comma(b, i)
			writeString(b, f.name)
			b.WriteByte(':')
			f.value.write(b, str)
		}
		b.WriteByte('}')
	}
}

func comma(b *bytes.Buffer, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}

func writeString(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)       // strings always encode
	b.Truncate(b.Len() - 1) // the newline
}
