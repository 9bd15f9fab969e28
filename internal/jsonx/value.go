// Package jsonx reads and writes JSON where encoding/json is not sufficient: it
// keeps the order of members and the text of numbers, reports duplicate keys,
// limits nesting, and reports the positions of errors.
//
// There are three ways to read JSON. [Parse] returns a tree of [Value] that can
// be changed and written again. [Check] only checks a text. [Members],
// [Elements], [Get] and [Text] read parts of valid JSON without copying, for
// texts of many megabytes. [Canonical] returns the form in which texts are
// compared, and [Marshal] encodes values that people may read.
package jsonx

import (
	"encoding/json"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is the type of a JSON value.
type Kind uint8

// The kinds of values. None is the kind of a nil *Value.
const (
	None Kind = iota
	Null
	False
	True
	Number
	String
	Array
	Object
)

// String returns the type with its article, such as "an object"; "nothing" for
// None.
func (k Kind) String() string {
	switch k {
	case None:
		return "nothing"
	case Null:
		return "null"
	case False, True:
		return "a boolean"
	case Number:
		return "a number"
	case String:
		return "a string"
	case Array:
		return "an array"
	}
	return "an object"
}

// Value is one JSON value that keeps its source form: scalars keep their text,
// objects the order of their members. Names are written with as few escapes as
// possible. Its fields may be changed. Reading
// methods treat nil as a missing value.
type Value struct {
	Kind    Kind
	Pos              // position; zero unless the reader recorded it
	Token   string   // of a scalar: its JSON text, including quotes
	Members []Member // of an object; names are unique
	Items   []*Value // of an array
}

// Member is one key of an object with its value.
type Member struct {
	Name  string // decoded
	Pos          // position of the name
	Value *Value
}

// Pos is a position in a document. The zero value is none: [Parse] records no
// positions. It is small because every value and member has one.
type Pos struct{ Line, Col int32 } // from 1, columns in characters

// NewPos returns the position of a line and a column.
func NewPos(line, col int) Pos { return Pos{int32(line), int32(col)} }

// Place returns line and column.
func (p Pos) Place() (line, col int) { return int(p.Line), int(p.Col) }

// NewString returns a string value.
func NewString(s string) *Value { return &Value{Kind: String, Token: Quote(s)} }

// NewMember returns a member for an object.
func NewMember(name string, v *Value) Member {
	return Member{Name: name, Value: v}
}

// NewObject returns an object of members with unique names.
func NewObject(members ...Member) *Value { return &Value{Kind: Object, Members: members} }

// NewStrings returns an array of strings.
func NewStrings(list []string) *Value {
	out := NewArray()
	for _, s := range list {
		out.Items = append(out.Items, NewString(s))
	}
	return out
}

// NewArray returns an array.
func NewArray(items ...*Value) *Value { return &Value{Kind: Array, Items: items} }

// NewBool returns true or false.
func NewBool(b bool) *Value {
	if b {
		return &Value{Kind: True, Token: "true"}
	}
	return &Value{Kind: False, Token: "false"}
}

// NewNull returns null.
func NewNull() *Value { return &Value{Kind: Null, Token: "null"} }

// Is reports whether v is of kind k. The kind of nil is None.
func (v *Value) Is(k Kind) bool { return v != nil && v.Kind == k || v == nil && k == None }

// Text returns the value of a string; "" if v is not a string.
func (v *Value) Text() string {
	if !v.Is(String) {
		return ""
	}
	return unquote(v.Token)
}

// Elements returns the items of an array; nil if v is not one.
func (v *Value) Elements() []*Value {
	if v == nil {
		return nil
	}
	return v.Items
}

// Fields returns the members of an object; nil if v is not one.
func (v *Value) Fields() []Member {
	if v == nil {
		return nil
	}
	return v.Members
}

// Strings returns the strings of an array, skipping other values.
func (v *Value) Strings() (out []string) {
	for _, item := range v.Elements() {
		if item.Kind == String {
			out = append(out, unquote(item.Token))
		}
	}
	return out
}

// IsText reports whether v is the string s.
func (v *Value) IsText(s string) bool { return v.Is(String) && v.Text() == s }

// Get returns the value of a key; nil if v is not an object or has no such key.
func (v *Value) Get(name string) *Value {
	if v == nil {
		return nil
	}
	if i := v.index(name); i >= 0 {
		return v.Members[i].Value
	}
	return nil
}

// index loops over the members in place, because a function call for each costs
// a copy.
func (v *Value) index(name string) int {
	for i := range v.Members {
		if v.Members[i].Name == name {
			return i
		}
	}
	return -1
}

// ByName returns the members of an object by name, for callers that need many.
func (v *Value) ByName() map[string]*Value {
	out := make(map[string]*Value, len(v.Members))
	for i := range v.Members {
		out[v.Members[i].Name] = v.Members[i].Value
	}
	return out
}

// Set replaces the value of a key, or adds the key at the end.
func (v *Value) Set(name string, value *Value) {
	if i := v.index(name); i >= 0 {
		v.Members[i].Value = value
		return
	}
	v.Members = append(v.Members, NewMember(name, value))
}

// Prepend adds a new key at the front.
func (v *Value) Prepend(name string, value *Value) {
	v.Members = append([]Member{NewMember(name, value)}, v.Members...)
}

// Remove removes a key and reports whether it existed.
func (v *Value) Remove(name string) bool {
	i := v.index(name)
	if i < 0 {
		return false
	}
	v.Members = append(v.Members[:i:i], v.Members[i+1:]...)
	return true
}

// Rename renames a key; the new name must not exist.
func (v *Value) Rename(old, name string) {
	if i := v.index(old); i >= 0 {
		v.Members[i] = NewMember(name, v.Members[i].Value)
	}
}

// Clone returns a copy that shares nothing with v.
func (v *Value) Clone() *Value {
	c := *v
	c.Members, c.Items = slices.Clone(v.Members), slices.Clone(v.Items)
	for i := range c.Members {
		c.Members[i].Value = c.Members[i].Value.Clone()
	}
	for i := range c.Items {
		c.Items[i] = c.Items[i].Clone()
	}
	return &c
}

// AppendTo appends v to dst as JSON without white space.
func (v *Value) AppendTo(dst []byte) []byte {
	switch v.Kind {
	case Object:
		dst = append(dst, '{')
		for i := range v.Members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendQuote(dst, v.Members[i].Name), ':')
			dst = v.Members[i].Value.AppendTo(dst)
		}
		return append(dst, '}')
	case Array:
		dst = append(dst, '[')
		for i, item := range v.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.AppendTo(dst)
		}
		return append(dst, ']')
	}
	return append(dst, v.Token...)
}

// JSON returns v as JSON without white space.
func (v *Value) JSON() json.RawMessage { return v.AppendTo(nil) }

// Plain returns the text of a string, and the JSON of other values.
func (v *Value) Plain() string {
	if v.Is(String) {
		return v.Text()
	}
	return string(v.JSON())
}

// MarshalJSON implements [json.Marshaler].
func (v *Value) MarshalJSON() ([]byte, error) { return v.AppendTo(nil), nil }

// EscapeToken escapes a key as a token of a JSON pointer (RFC 6901).
func EscapeToken(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// Tokens yields the keys and indexes in a JSON pointer. The pointer "" is the
// whole document and has none.
func Tokens(pointer string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if pointer == "" {
			return
		}
		for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
			if !yield(strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")) {
				return
			}
		}
	}
}

// Step returns the value at one token of a pointer; nil if there is none.
func (v *Value) Step(token string) *Value {
	if !v.Is(Array) {
		return v.Get(token)
	}
	if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v.Items) {
		return v.Items[i]
	}
	return nil
}

// Walk calls visit with every value from v downwards and its dotted key, which
// begins with key: a.b for members, a[0] for elements.
func (v *Value) Walk(key string, visit func(key string, v *Value)) {
	visit(key, v)
	for i, item := range v.Items {
		item.Walk(key+"["+strconv.Itoa(i)+"]", visit)
	}
	for _, m := range v.Members {
		name := m.Name
		if key != "" {
			name = key + "." + name
		}
		m.Value.Walk(name, visit)
	}
}

// SetPos sets the position of v and of everything below it.
func (v *Value) SetPos(p Pos) {
	v.Pos = p
	for _, item := range v.Items {
		item.SetPos(p)
	}
	for i := range v.Members {
		v.Members[i].Pos = p
		v.Members[i].Value.SetPos(p)
	}
}

// Locate returns the position of the value that a JSON pointer names, or of the
// nearest enclosing value. A member's position is that of its name.
func (v *Value) Locate(pointer string) Pos {
	at := v.Pos
	for token := range Tokens(pointer) {
		next := v.Step(token)
		if next == nil {
			break
		}
		if at = next.Pos; v.Kind == Object {
			at = v.Members[v.index(token)].Pos
		}
		v = next
	}
	return at
}

// Lines converts offsets in a text to line and column numbers. It is not safe for
// concurrent use.
type Lines struct {
	data   []byte
	starts []int // offset of each line
	offset int   // of the last result, because the next offset is usually a little larger
	column int
}

// NewLines returns the Lines of a text, which must not change.
func NewLines(data []byte) *Lines {
	l := &Lines{data: data, starts: []int{0}, column: 1}
	for i, c := range data {
		if c == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

// At returns the line and column of an offset, both starting at 1, with columns
// in characters.
func (l *Lines) At(offset int) (line, column int) {
	offset = min(max(offset, 0), len(l.data))
	line = sort.SearchInts(l.starts, offset+1)
	start := l.starts[line-1]
	if l.offset < start || l.offset > offset {
		l.offset, l.column = start, 1
	}
	l.column += utf8.RuneCount(l.data[l.offset:offset])
	l.offset = offset
	return line, l.column
}
