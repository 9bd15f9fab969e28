package gemini

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// types returns the types of n without null, and whether null is one of them. If n
// has no explicit types, they are derived from the other keywords.
func (f *Fitter) types(n *jsonx.Value) (types []string, null bool) {
	typ := n.Get("type")
	named := []*jsonx.Value{typ}
	if typ.Is(jsonx.Array) {
		named = typ.Items
	}
	for _, t := range named {
		switch name := t.Text(); {
		case strings.EqualFold(name, "null"):
			f.changed("null as a type written as nullable")
			null = true
		case isType(name) && !slices.Contains(types, name):
			types = append(types, name)
		}
	}
	if len(types) > 0 || null {
		return types, null
	}
	if list := constants(n); len(list) > 0 && !slices.ContainsFunc(list, func(v *jsonx.Value) bool { return !v.Is(jsonx.Null) }) {
		f.changed("an enum of null written as the type null")
		return nil, true
	}
	if guess := guessedType(n); guess != "" {
		f.changed("types added")
		return []string{guess}, false
	}
	return nil, false
}

// guessedType returns the type that the values or keywords of a schema imply, or
// "".
func guessedType(n *jsonx.Value) string {
	if name := typeOfValues(n); name != "" {
		return name
	}
	for _, guess := range []struct{ keyword, typ string }{
		{"properties", "object"}, {"required", "object"}, {"items", "array"}, {"prefixItems", "array"},
		{"pattern", "string"}, {"minLength", "string"}, {"maxLength", "string"},
		{"minimum", "number"}, {"maximum", "number"},
	} {
		if n.Get(guess.keyword) != nil {
			return guess.typ
		}
	}
	return ""
}

func typeOfValues(n *jsonx.Value) string {
	found := ""
	for _, v := range constants(n) {
		switch name := schema.TypeOf(v); {
		case name == "null" || name == found:
		case found == "":
			found = name
		default: // values are declared as strings in any case
			return "string"
		}
	}
	return found
}

// constants returns the values of const or enum, or nil if there is neither.
func constants(n *jsonx.Value) []*jsonx.Value {
	if c := n.Get("const"); c != nil {
		return []*jsonx.Value{c}
	}
	if enum := n.Get("enum"); enum.Is(jsonx.Array) {
		return enum.Items
	}
	return nil
}

// values returns the values of enum or const without null and values that the API
// rejects. It returns nil if there are none.
func (f *Fitter) values(n *jsonx.Value) *jsonx.Value {
	list := constants(n)
	switch {
	case n.Get("const") != nil:
		f.changed("const written as an enum of one")
	case len(list) == 0:
		if n.Get("enum").Is(jsonx.Array) {
			f.changed("an enum without values dropped")
		}
		return nil
	}
	items := slices.DeleteFunc(slices.Clone(list), func(v *jsonx.Value) bool { return v.Is(jsonx.Null) })
	if len(items) == 0 {
		f.lose("an enum without values")
		return nil
	}
	if len(items) < len(list) {
		f.changed("null omitted from an enum")
	}
	if refused := func(v *jsonx.Value) bool { return String(v) == "" }; slices.ContainsFunc(items, refused) {
		f.lose("an empty string as a value of an enum")
		if items = slices.DeleteFunc(items, refused); len(items) == 0 {
			return nil
		}
	}
	return jsonx.NewArray(items...)
}

// splitTypes returns one schema for each type, with the values of that type.
// Keywords of n that apply to another type are omitted.
func splitTypes(n *jsonx.Value, types []string) []*jsonx.Value {
	out := make([]*jsonx.Value, len(types))
	for i, t := range types {
		out[i] = schema.OfType(t)
		if enum := n.Get("enum"); enum != nil {
			others := func(v *jsonx.Value) bool { return !isOf(v, strings.ToLower(t)) }
			out[i].Set("enum", jsonx.NewArray(slices.DeleteFunc(slices.Clone(enum.Items), others)...))
		}
	}
	if typ := n.Get("type"); typ.Is(jsonx.Array) && slices.ContainsFunc(typ.Items, isNullName) {
		out = append(out, schema.OfType("null"))
	}
	return out
}

func isOf(v *jsonx.Value, typ string) bool {
	name := schema.TypeOf(v)
	return name == typ || name == "integer" && typ == "number"
}

func isNullName(n *jsonx.Value) bool { return strings.EqualFold(n.Text(), "null") }

// isNullable reports whether a schema has OpenAPI's nullable.
func isNullable(n *jsonx.Value) bool {
	word := n.Get("nullable")
	return word.Is(jsonx.True)
}
