// Package typescript writes JSON Schemas as TypeScript types, and text as
// documentation comments. No text in a schema can end the comment or the type
// around it. A type is limited to about 64 KB; parts beyond that are unknown.
package typescript

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// AppendType writes the type of the values that a schema describes. The first line
// is not indented.
func AppendType(dst []byte, root *jsonx.Value) []byte {
	w := writer{refs: schema.NewRefs(root), out: dst, start: len(dst)}
	w.schema(root, "", 0)
	return w.out
}

// maxBytes is the maximum length of a type, because references can double it at
// each step. Parts beyond the limit are unknown.
const maxBytes = 64 << 10

// maxNesting is the maximum depth of schemas to follow.
const maxNesting = 20

type writer struct {
	refs  *schema.Refs
	out   []byte
	start int            // length of out before the type
	stack []*jsonx.Value // schemas being written, to detect cycles
}

func (w *writer) raw(s string) { w.out = append(w.out, s...) }

// full reports whether the type has reached its maximum length.
func (w *writer) full() bool { return len(w.out)-w.start > maxBytes }

// schema writes the type of a schema. indent is the indentation of the first line.
// A missing schema accepts any value.
func (w *writer) schema(n *jsonx.Value, indent string, depth int) {
	n, err := w.refs.Resolve(n)
	if err != nil || !n.Is(jsonx.Object) || depth > maxNesting ||
		w.full() || slices.Contains(w.stack, n) {
		w.raw("unknown")
		return
	}
	w.stack = append(w.stack, n)
	switch enum, constant := n.Get("enum"), n.Get("const"); {
	case enum != nil && len(enum.Items) > 0:
		w.literals(enum.Items)
	case constant != nil:
		w.literals([]*jsonx.Value{constant})
	default:
		w.keywords(n, indent, depth)
	}
	w.stack = w.stack[:len(w.stack)-1]
}

// keywords writes the keywords of one schema. Those that apply together form an
// intersection.
func (w *writer) keywords(n *jsonx.Value, indent string, depth int) {
	start := len(w.out)
	and := func() {
		if len(w.out) > start {
			w.raw(" & ")
		}
	}
	all, alternatives := n.Get("allOf"), n.Get("anyOf")
	if alternatives == nil {
		alternatives = n.Get("oneOf")
	}
	combined := all != nil || alternatives != nil
	if typ := n.Get("type"); n.Get("properties") != nil || typ != nil && !(combined && typ.IsText("object")) {
		w.types(n, typ, indent, depth, combined)
	}
	for _, branch := range all.Elements() {
		if w.full() {
			break
		}
		if isCondition(branch) { // its properties are among those of n
			continue
		}
		and()
		w.schema(branch, indent, depth+1)
	}
	if list := alternatives.Elements(); len(list) > 0 {
		and()
		w.union(list, indent, depth)
	}
	if len(w.out) == start {
		w.raw("unknown")
	}
}

// isCondition reports whether a schema only states conditions, such as what is required.
func isCondition(n *jsonx.Value) bool {
	return n.Is(jsonx.Object) && len(n.Members) > 0 && !slices.ContainsFunc(n.Members, func(m jsonx.Member) bool {
		switch m.Name {
		case "if", "then", "else", "dependentSchemas", "dependentRequired", "description", "$comment":
			return false
		}
		return true
	})
}

func (w *writer) union(branches []*jsonx.Value, indent string, depth int) {
	w.raw("(")
	for i, branch := range branches {
		if i > 0 {
			w.raw(" | ")
		}
		if i > 0 && w.full() {
			w.raw("unknown")
			break
		}
		w.schema(branch, indent, depth+1)
	}
	w.raw(")")
}

// types writes the keyword type, which is a single type or a list. group puts the
// alternatives of a list in parentheses.
func (w *writer) types(n, typ *jsonx.Value, indent string, depth int, group bool) {
	names := []*jsonx.Value{typ}
	switch {
	case typ == nil:
		names = []*jsonx.Value{jsonx.NewString("object")}
	case typ.Is(jsonx.Array):
		names = typ.Items
	}
	if group = group && len(names) > 1; group {
		w.raw("(")
	}
	for i, name := range names {
		if i > 0 {
			w.raw(" | ")
		}
		w.named(n, strings.ToLower(name.Text()), indent, depth)
	}
	if len(names) == 0 {
		w.raw("unknown")
	}
	if group {
		w.raw(")")
	}
}

func (w *writer) named(n *jsonx.Value, name, indent string, depth int) {
	switch name {
	case "string", "number", "boolean", "null":
		w.raw(name)
	case "integer":
		w.raw("number")
	case "array":
		w.array(n, indent, depth)
	case "object":
		w.object(n, indent, depth)
	default:
		w.raw("unknown")
	}
}

// literals writes a union of JSON values. Objects and arrays have no literal type
// and are unknown.
func (w *writer) literals(values []*jsonx.Value) {
	for i, v := range values {
		if i > 0 {
			w.raw(" | ")
		}
		if v.Is(jsonx.Object) || v.Is(jsonx.Array) {
			w.raw("unknown")
		} else {
			w.raw(v.Token)
		}
	}
}

// array writes the type of an array, or a tuple if the schema describes one.
func (w *writer) array(n *jsonx.Value, indent string, depth int) {
	tuple, items := n.Get("prefixItems"), n.Get("items")
	if tuple == nil || len(tuple.Items) == 0 {
		w.list("Array<", items, indent, depth)
		return
	}
	w.raw("[")
	for i, v := range tuple.Items {
		if w.full() {
			break
		}
		if i > 0 {
			w.raw(", ")
		}
		w.schema(v, indent, depth+1)
	}
	if !items.Is(jsonx.False) {
		w.list(", ...Array<", items, indent, depth)
	}
	w.raw("]")
}

func (w *writer) list(open string, items *jsonx.Value, indent string, depth int) {
	w.raw(open)
	w.schema(items, indent, depth+1)
	w.raw(">")
}

func (w *writer) object(n *jsonx.Value, indent string, depth int) {
	properties, further := n.Get("properties"), n.Get("additionalProperties")
	switch {
	case properties.Is(jsonx.Object) && len(properties.Members) > 0:
		w.properties(n, properties.Members, indent, depth)
	case further.Is(jsonx.False):
		w.raw("{}")
	case further.Is(jsonx.Object):
		w.list("Record<string, ", further, indent, depth)
	default:
		w.raw("Record<string, unknown>")
	}
}

func (w *writer) properties(n *jsonx.Value, properties []jsonx.Member, indent string, depth int) {
	required, further := schema.Required(n), n.Get("additionalProperties")
	more := further != nil && (further.Is(jsonx.True) || further.Is(jsonx.Object))
	inner := indent + "  "
	w.raw("{\n")
	for _, m := range properties {
		if w.full() {
			more = true
			break
		}
		w.out = AppendComment(w.out, inner, m.Value.Get("description").Text())
		w.raw(inner)
		w.key(m, required[m.Name])
		w.schema(m.Value, inner, depth+1)
		w.raw(";\n")
	}
	if more {
		w.raw(inner + "[key: string]: unknown;\n")
	}
	w.raw(indent + "}")
}

func (w *writer) key(m jsonx.Member, required bool) {
	if isIdentifier(m.Name) {
		w.raw(m.Name)
	} else {
		w.raw(jsonx.Quote(m.Name))
	}
	if required {
		w.raw(": ")
	} else {
		w.raw("?: ")
	}
}

// AppendComment writes text as an indented documentation comment. It writes nothing
// if the text is blank.
func AppendComment(dst []byte, indent, text string) []byte {
	text = strings.TrimSpace(Lines(text))
	if text == "" {
		return dst
	}
	text = strings.ReplaceAll(text, "*/", `*\/`)
	if !strings.Contains(text, "\n") {
		dst = append(dst, indent...)
		dst = append(dst, "/** "...)
		dst = append(dst, text...)
		return append(dst, " */\n"...)
	}
	dst = append(dst, indent+"/**\n"...)
	for line := range strings.SplitSeq(text, "\n") {
		dst = append(dst, strings.TrimRight(indent+" * "+line, " \t")+"\n"...)
	}
	return append(dst, indent+" */\n"...)
}

// Lines converts all kinds of line breaks to newlines and invalid bytes to
// U+FFFD.
func Lines(text string) string {
	if isPlain(text) {
		return text
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n",
		"\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// isPlain reports whether text is one line of printable ASCII.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7F })
}

// Reserved reports whether a word cannot be the name of a function.
func Reserved(name string) bool {
	switch name {
	case "arguments", "as", "async", "await", "break", "case", "catch", "class", "const", "continue",
		"debugger", "declare", "default", "delete", "do", "else", "enum", "eval", "export", "extends",
		"false", "finally", "for", "function", "if", "implements", "import", "in", "instanceof",
		"interface", "let", "new", "null", "package", "private", "protected", "public", "return",
		"static", "super", "switch", "this", "throw", "true", "try", "type", "typeof", "undefined",
		"var", "void", "while", "with", "yield":
		return true
	}
	return false
}

// isIdentifier reports whether a property name needs no quotes.
func isIdentifier(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
