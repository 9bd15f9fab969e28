package declare

import (
	"encoding/json"
	"strings"
)

type kind uint8

const (
	kindObject kind = iota
	kindArray
	kindString
	kindNumber
	kindTrue
	kindFalse
	kindNull
)

// node is one JSON value that remembers how it was written: scalars keep their
// source text, objects the order of their members.
type node struct {
	kind    kind
	token   string // scalars: the JSON text
	members []member
	items   []*node
}

// member is one key of an object with its value. A key is there once.
type member struct {
	name  string // decoded
	token string // as written, with quotes
	value *node
}

func newString(s string) *node {
	return &node{kind: kindString, token: quoted(s)}
}

func newMember(name string, value *node) member {
	return member{name: name, token: quoted(name), value: value}
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
	return string(appendString(nil, s))
}

func newObject(members ...member) *node { return &node{kind: kindObject, members: members} }

func newArray(items ...*node) *node { return &node{kind: kindArray, items: items} }

func newFalse() *node { return &node{kind: kindFalse, token: "false"} }

func newNull() *node { return &node{kind: kindNull, token: "null"} }

// emptyParams is the schema of a tool without params.
func emptyParams() *node {
	return newObject(newMember("type", newString("object")), newMember("properties", newObject()))
}

// get returns the value of a key, nil where n is no object or has no such key.
func (n *node) get(name string) *node {
	if n == nil || n.kind != kindObject {
		return nil
	}
	if i := n.index(name); i >= 0 {
		return n.members[i].value
	}
	return nil
}

func (n *node) index(name string) int {
	for i := range n.members {
		if n.members[i].name == name {
			return i
		}
	}
	return -1
}

// set replaces the value of a key in its place, or adds the key at the end.
func (n *node) set(name string, value *node) {
	if i := n.index(name); i >= 0 {
		n.members[i].value = value
		return
	}
	n.members = append(n.members, newMember(name, value))
}

// prepend puts a key that is not there yet in front.
func (n *node) prepend(name string, value *node) {
	n.members = append([]member{newMember(name, value)}, n.members...)
}

// remove drops a key and reports whether it was there.
func (n *node) remove(name string) bool {
	i := n.index(name)
	if i < 0 {
		return false
	}
	n.members = append(n.members[:i:i], n.members[i+1:]...)
	return true
}

// rename gives a key another name in its place.
func (n *node) rename(old, name string) {
	if i := n.index(old); i >= 0 {
		n.members[i] = newMember(name, n.members[i].value)
	}
}

// text returns the decoded string, "" where n is none.
func (n *node) text() string {
	if n == nil || n.kind != kindString {
		return ""
	}
	return unquote(n.token)
}

// is reports whether n is the string s.
func (n *node) is(s string) bool { return n != nil && n.kind == kindString && n.text() == s }

func (n *node) clone() *node {
	c := &node{kind: n.kind, token: n.token}
	if len(n.members) > 0 {
		c.members = make([]member, len(n.members))
		for i, m := range n.members {
			c.members[i] = member{name: m.name, token: m.token, value: m.value.clone()}
		}
	}
	if len(n.items) > 0 {
		c.items = make([]*node, len(n.items))
		for i, v := range n.items {
			c.items[i] = v.clone()
		}
	}
	return c
}

// appendTo writes n without white space.
func (n *node) appendTo(dst []byte) []byte {
	switch n.kind {
	case kindObject:
		dst = append(dst, '{')
		for i := range n.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, n.members[i].token...)
			dst = append(dst, ':')
			dst = n.members[i].value.appendTo(dst)
		}
		return append(dst, '}')
	case kindArray:
		dst = append(dst, '[')
		for i, v := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.appendTo(dst)
		}
		return append(dst, ']')
	}
	return append(dst, n.token...)
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
func appendString(dst []byte, s string) []byte {
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
