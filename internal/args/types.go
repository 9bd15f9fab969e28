package args

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// types reads from an input schema which type a place in the params has. It
// follows local references; what it cannot tell is a string.
type types struct {
	root node
}

// node is the part of a JSON Schema that says how to read text.
type node struct {
	Ref        string            `json:"$ref"`
	Type       json.RawMessage   `json:"type"`
	Properties map[string]node   `json:"properties"`
	Items      json.RawMessage   `json:"items"`
	Enum       []json.RawMessage `json:"enum"`
	Const      json.RawMessage   `json:"const"`
	AnyOf      []node            `json:"anyOf"`
	OneOf      []node            `json:"oneOf"`
	AllOf      []node            `json:"allOf"`
	Defs       map[string]node   `json:"$defs"`
	Old        map[string]node   `json:"definitions"`
}

func newTypes(schema json.RawMessage) types {
	var t types
	if json.Unmarshal(schema, &t.root) != nil {
		return types{} // a broken schema fails in validation, with a better message
	}
	return t
}

// path splits a dotted key, unless the schema knows the key as a whole.
func (t types) path(key string) []string {
	if _, ok := t.root.Properties[key]; ok {
		return []string{key}
	}
	return strings.Split(key, ".")
}

func (t types) at(path []string) schemaType {
	n := t.root
	for _, key := range path {
		next, ok := t.property(n, key, 0)
		if !ok {
			return schemaType{}
		}
		n = next
	}
	return t.typeOf(n, 0)
}

// maxHops bounds references and nested alternatives.
const maxHops = 16

func (t types) property(n node, key string, hops int) (node, bool) {
	if hops > maxHops {
		return node{}, false
	}
	n = t.resolve(n, hops)
	if p, ok := n.Properties[key]; ok {
		return p, true
	}
	for _, alt := range slices.Concat(n.AllOf, n.AnyOf, n.OneOf) {
		if p, ok := t.property(alt, key, hops+1); ok {
			return p, true
		}
	}
	return node{}, false
}

func (t types) resolve(n node, hops int) node {
	for ; n.Ref != "" && hops < maxHops; hops++ {
		name, inDefs := strings.CutPrefix(n.Ref, "#/$defs/")
		table := t.root.Defs
		if !inDefs {
			name, _ = strings.CutPrefix(n.Ref, "#/definitions/")
			table = t.root.Old
		}
		target, ok := table[name]
		if !ok {
			return node{}
		}
		n = target
	}
	return n
}

// schemaType says how the text of one argument becomes JSON. The zero value
// takes any text as a string.
type schemaType struct {
	names []string // types in the schema, all alternatives together
	enum  []json.RawMessage
	items *schemaType
}

func (t types) typeOf(n node, hops int) schemaType {
	if hops > maxHops {
		return schemaType{}
	}
	n = t.resolve(n, hops)
	out := schemaType{names: typeNames(n.Type), enum: n.Enum}
	if n.Const != nil {
		out.enum = append(out.enum, n.Const)
	}
	if slices.Contains(out.names, "array") {
		var item node
		_ = json.Unmarshal(n.Items, &item) // tuple or boolean items: strings
		it := t.typeOf(item, hops+1)
		out.items = &it
	}
	for _, alt := range slices.Concat(n.AllOf, n.AnyOf, n.OneOf) {
		a := t.typeOf(alt, hops+1)
		out.names = append(out.names, a.names...)
		out.enum = append(out.enum, a.enum...)
		if out.items == nil {
			out.items = a.items
		}
	}
	return out
}

func typeNames(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{strings.ToLower(one)}
	}
	var many []string
	if json.Unmarshal(raw, &many) != nil {
		return nil
	}
	return many
}

func (s schemaType) has(name string) bool { return slices.Contains(s.names, name) }

// isList reports whether a single value given for s is one element of a list.
func (s schemaType) isList() bool { return s.items != nil && !s.has("string") }

// encode turns text into JSON of one of the schema's types, the most specific
// first, text last.
func (s schemaType) encode(text string) (json.RawMessage, error) {
	trimmed := bytes.TrimSpace([]byte(text))
	for _, e := range s.enum { // an enum of numbers or booleans needs no type
		if len(e) > 0 && e[0] != '"' && bytes.Equal(e, trimmed) {
			return trimmed, nil
		}
	}
	if ok := s.fits(trimmed); ok && registry.CheckJSON(trimmed) == nil {
		return trimmed, nil
	}
	if len(s.names) == 0 || s.has("string") {
		return quote(text), nil
	}
	return nil, fmt.Errorf("want %s, got %q", strings.Join(article(s.names), " or "), cutText(text))
}

// fits reports whether the text starts like a value of one of the types that
// are no strings.
func (s schemaType) fits(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	switch c := text[0]; {
	case c == '{':
		return s.has("object")
	case c == '[':
		return s.has("array")
	case c == 't' || c == 'f':
		return s.has("boolean")
	case c == 'n':
		return s.has("null") && !s.has("string")
	case c == '-' || c >= '0' && c <= '9':
		return s.has("number") || s.has("integer") && !bytes.ContainsAny(text, ".eE") || s.has("integer") && !s.has("string")
	}
	return false
}

func article(names []string) []string {
	var out []string
	for _, n := range names {
		word := "a " + n
		if strings.ContainsRune("aeio", rune(n[0])) {
			word = "an " + n
		}
		if n == "array" {
			word = "a list ([…] as JSON)"
		}
		if !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}

func cutText(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

func quote(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil { // strings always encode
		return json.RawMessage(`""`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
