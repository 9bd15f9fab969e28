package typescript

import (
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

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
