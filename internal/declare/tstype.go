package declare

import (
	"slices"
	"strings"
)

// maxTypeBytes bounds the type written for one tool: references that double at
// each step can ask for any amount. Beyond it parts are unknown.
const maxTypeBytes = 64 << 10

// typeWriter writes JSON Schemas as TypeScript types.
type typeWriter struct {
	refs  *resolver
	out   []byte
	start int     // length of out before the first type
	stack []*node // schemas being written, against circles
}

func (w *typeWriter) raw(s string) { w.out = append(w.out, s...) }

// full reports whether the type is as long as it may get.
func (w *typeWriter) full() bool { return len(w.out)-w.start > maxTypeBytes }

// typ writes the type of a schema; indent is that of the line it begins on.
func (w *typeWriter) typ(n *node, indent string, depth int) {
	if depth == 0 {
		w.start = len(w.out)
	}
	n, err := w.refs.resolve(n)
	if err != nil || n.kind != kindObject || depth > maxNesting ||
		w.full() || slices.Contains(w.stack, n) {
		w.raw("unknown")
		return
	}
	w.stack = append(w.stack, n)
	w.keywords(n, indent, depth)
	w.stack = w.stack[:len(w.stack)-1]
}

// keywords writes the keywords of one schema; those that all hold at once are
// an intersection.
func (w *typeWriter) keywords(n *node, indent string, depth int) {
	if enum := n.get("enum"); enum != nil && len(enum.items) > 0 {
		w.literals(enum.items)
		return
	}
	if c := n.get("const"); c != nil {
		w.literals([]*node{c})
		return
	}
	parts := 0
	and := func() {
		if parts++; parts > 1 {
			w.raw(" & ")
		}
	}
	alternatives := n.get("anyOf")
	if alternatives == nil {
		alternatives = n.get("oneOf")
	}
	all := n.get("allOf")
	combined := all != nil || alternatives != nil
	if typ := n.get("type"); n.get("properties") != nil || typ != nil && !(combined && typ.is("object")) {
		and()
		w.types(n, typ, indent, depth, combined)
	}
	if all != nil {
		for _, branch := range all.items {
			if w.full() {
				break
			}
			and()
			w.typ(branch, indent, depth+1)
		}
	}
	if alternatives != nil && len(alternatives.items) > 0 {
		and()
		w.union(alternatives.items, indent, depth)
	}
	if parts == 0 {
		w.raw("unknown")
	}
}

func (w *typeWriter) union(branches []*node, indent string, depth int) {
	w.raw("(")
	for i, branch := range branches {
		if i > 0 {
			w.raw(" | ")
		}
		if i > 0 && w.full() {
			w.raw("unknown")
			break
		}
		w.typ(branch, indent, depth+1)
	}
	w.raw(")")
}

// types writes what the type keyword says, alone or as a list.
func (w *typeWriter) types(n, typ *node, indent string, depth int, group bool) {
	names := []*node{typ}
	switch {
	case typ == nil:
		names = []*node{newString("object")}
	case typ.kind == kindArray:
		names = typ.items
	}
	group = group && len(names) > 1
	if group {
		w.raw("(")
	}
	for i, name := range names {
		if i > 0 {
			w.raw(" | ")
		}
		w.named(n, strings.ToLower(name.text()), indent, depth)
	}
	if len(names) == 0 {
		w.raw("unknown")
	}
	if group {
		w.raw(")")
	}
}

func (w *typeWriter) named(n *node, name, indent string, depth int) {
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

func (w *typeWriter) array(n *node, indent string, depth int) {
	tuple, items := n.get("prefixItems"), n.get("items")
	if items != nil && items.kind == kindArray {
		tuple, items = items, n.get("additionalItems")
	}
	if tuple == nil || len(tuple.items) == 0 {
		w.raw("Array<")
		w.item(items, indent, depth)
		w.raw(">")
		return
	}
	w.raw("[")
	for i, v := range tuple.items {
		if w.full() {
			break
		}
		if i > 0 {
			w.raw(", ")
		}
		w.typ(v, indent, depth+1)
	}
	if items == nil || items.kind != kindFalse {
		w.raw(", ...Array<")
		w.item(items, indent, depth)
		w.raw(">")
	}
	w.raw("]")
}

func (w *typeWriter) item(n *node, indent string, depth int) {
	if n == nil {
		w.raw("unknown")
		return
	}
	w.typ(n, indent, depth+1)
}

func (w *typeWriter) object(n *node, indent string, depth int) {
	properties, further := n.get("properties"), n.get("additionalProperties")
	if properties == nil || properties.kind != kindObject || len(properties.members) == 0 {
		switch {
		case closed(n):
			w.raw("{}")
		case further != nil && further.kind == kindObject:
			w.raw("Record<string, ")
			w.typ(further, indent, depth+1)
			w.raw(">")
		default:
			w.raw("Record<string, unknown>")
		}
		return
	}
	required := namesIn(n.get("required"))
	inner := indent + "  "
	w.raw("{\n")
	for _, m := range properties.members {
		if w.full() {
			w.raw(inner + "[key: string]: unknown;\n")
			further = nil
			break
		}
		w.comment(inner, m.value.get("description").text())
		w.raw(inner)
		if isIdentifier(m.name) {
			w.raw(m.name)
		} else {
			w.raw(m.token)
		}
		if !required[m.name] {
			w.raw("?")
		}
		w.raw(": ")
		w.typ(m.value, inner, depth+1)
		w.raw(";\n")
	}
	if further != nil && (further.kind == kindTrue || further.kind == kindObject) {
		w.raw(inner + "[key: string]: unknown;\n")
	}
	w.raw(indent + "}")
}

// literals writes a union of JSON values; objects and arrays have no literal
// type and are unknown.
func (w *typeWriter) literals(values []*node) {
	for i, v := range values {
		if i > 0 {
			w.raw(" | ")
		}
		if v.kind == kindObject || v.kind == kindArray {
			w.raw("unknown")
		} else {
			w.raw(v.token)
		}
	}
}

// comment writes text as a documentation comment, none where it is empty.
func (w *typeWriter) comment(indent, text string) {
	text = strings.TrimSpace(unified(text))
	if text == "" {
		return
	}
	text = jsdoc(text)
	if !strings.Contains(text, "\n") {
		w.raw(indent)
		w.raw("/** ")
		w.raw(text)
		w.raw(" */\n")
		return
	}
	w.raw(indent + "/**\n")
	for line := range strings.SplitSeq(text, "\n") {
		w.raw(strings.TrimRight(indent+" * "+line, " \t") + "\n")
	}
	w.raw(indent + " */\n")
}
