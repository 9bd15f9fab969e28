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

// writer writes one type.
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
	if all != nil {
		for _, branch := range all.Items {
			if w.full() {
				break
			}
			and()
			w.schema(branch, indent, depth+1)
		}
	}
	if alternatives != nil && len(alternatives.Items) > 0 {
		and()
		w.union(alternatives.Items, indent, depth)
	}
	if len(w.out) == start {
		w.raw("unknown")
	}
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
