package tree

import (
	"encoding/json"
	"strings"
)

type kind uint8

const (
	Object kind = iota
	Array
	String
	Number
	True
	False
	Null
)

// node is one JSON value that remembers how it was written: scalars keep their
// source text, objects the order of their members.
type Node struct {
	Kind    kind
	Token   string // scalars: the JSON text
	Members []Member
	Items   []*Node
}

// member is one key of an object with its value. A key is there once.
type Member struct {
	Name  string // decoded
	Token string // as written, with quotes
	Value *Node
}

func NewString(s string) *Node {
	return &Node{Kind: String, Token: quoted(s)}
}

func NewMember(name string, value *Node) Member {
	return Member{Name: name, Token: quoted(name), Value: value}
}

// quoted is s as a JSON string. Keywords, which most are, take no detour.
func quoted(s string) string {
	switch s {
	case "type":
		return `"type"`
	case "properties":
		return `"properties"`
	case "required":
		return `"required"`
	case "items":
		return `"items"`
	case "enum":
		return `"enum"`
	case "object":
		return `"object"`
	}
	return string(AppendString(nil, s))
}

func NewObject(members ...Member) *Node { return &Node{Kind: Object, Members: members} }

func NewArray(items ...*Node) *Node { return &Node{Kind: Array, Items: items} }

func NewFalse() *Node { return &Node{Kind: False, Token: "false"} }

func NewNull() *Node { return &Node{Kind: Null, Token: "null"} }

// get returns the value of a key, nil where n is no object or has no such key.
func (n *Node) Get(name string) *Node {
	if n == nil || n.Kind != Object {
		return nil
	}
	if i := n.index(name); i >= 0 {
		return n.Members[i].Value
	}
	return nil
}

func (n *Node) index(name string) int {
	for i := range n.Members {
		if n.Members[i].Name == name {
			return i
		}
	}
	return -1
}

// set replaces the value of a key in its place, or adds the key at the end.
func (n *Node) Set(name string, value *Node) {
	if i := n.index(name); i >= 0 {
		n.Members[i].Value = value
		return
	}
	n.Members = append(n.Members, NewMember(name, value))
}

// prepend puts a key that is not there yet in front.
func (n *Node) Prepend(name string, value *Node) {
	n.Members = append([]Member{NewMember(name, value)}, n.Members...)
}

// remove drops a key and reports whether it was there.
func (n *Node) Remove(name string) bool {
	i := n.index(name)
	if i < 0 {
		return false
	}
	n.Members = append(n.Members[:i:i], n.Members[i+1:]...)
	return true
}

// rename gives a key another name in its place.
func (n *Node) Rename(old, name string) {
	if i := n.index(old); i >= 0 {
		n.Members[i] = NewMember(name, n.Members[i].Value)
	}
}

// text returns the decoded string, "" where n is none.
func (n *Node) Text() string {
	if n == nil || n.Kind != String {
		return ""
	}
	return unquote(n.Token)
}

// is reports whether n is the string s.
func (n *Node) Is(s string) bool { return n != nil && n.Kind == String && n.Text() == s }

func (n *Node) Clone() *Node {
	c := &Node{Kind: n.Kind, Token: n.Token}
	if len(n.Members) > 0 {
		c.Members = make([]Member, len(n.Members))
		for i, m := range n.Members {
			c.Members[i] = Member{Name: m.Name, Token: m.Token, Value: m.Value.Clone()}
		}
	}
	if len(n.Items) > 0 {
		c.Items = make([]*Node, len(n.Items))
		for i, v := range n.Items {
			c.Items[i] = v.Clone()
		}
	}
	return c
}

// appendTo writes n without white space.
func (n *Node) AppendTo(dst []byte) []byte {
	switch n.Kind {
	case Object:
		dst = append(dst, '{')
		for i := range n.Members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, n.Members[i].Token...)
			dst = append(dst, ':')
			dst = n.Members[i].Value.AppendTo(dst)
		}
		return append(dst, '}')
	case Array:
		dst = append(dst, '[')
		for i, v := range n.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.AppendTo(dst)
		}
		return append(dst, ']')
	}
	return append(dst, n.Token...)
}

// unquote decodes a JSON string that is known to be well formed.
func unquote(token string) string {
	inner := token[1 : len(token)-1]
	if !strings.Contains(inner, `\`) {
		return inner
	}
	var s string
	if json.Unmarshal([]byte(token), &s) != nil {
		return inner
	}
	return s
}

// appendString writes s as a JSON string. Like encoding/json it turns invalid
// UTF-8 into U+FFFD and escapes the line separators U+2028 and U+2029, which
// end lines in JavaScript; unlike it, it leaves <, > and & readable.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s { // an invalid byte comes as U+FFFD
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r < 0x20 || r == '\u2028' || r == '\u2029':
			dst = append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		case r < 0x80:
			dst = append(dst, byte(r))
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}
