package gemini

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/declare/tree"
)

// types returns the types of n, null apart. Where none are named they are those
// of what the other keywords speak of.
func (f *Fitter) types(n *tree.Node) (types []string, null bool) {
	typ := n.Get("type")
	named := []*tree.Node{typ}
	if typ != nil && typ.Kind == tree.Array {
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
	if c := n.Get("const"); c != nil && c.Kind == tree.Null {
		return nil, true
	}
	if guess := guessedType(n); guess != "" {
		f.changed("types added")
		return []string{guess}, false
	}
	return nil, false
}

// guessedType is the type that the values or the keywords of a schema tell of,
// "" where none do.
func guessedType(n *tree.Node) string {
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

func typeOfValues(n *tree.Node) string {
	values := n.Get("enum")
	if c := n.Get("const"); c != nil {
		values = tree.NewArray(c)
	}
	if values == nil {
		return ""
	}
	found := ""
	for _, v := range values.Items {
		switch name := tree.TypeName(v); {
		case name == "null" || name == found:
		case found == "":
			found = name
		default: // its values are declared as strings in any case
			return "string"
		}
	}
	return found
}

// values returns enum or const as a list without null, nil where nothing is in
// it.
func (f *Fitter) values(n *tree.Node) *tree.Node {
	list := n.Get("enum")
	if c := n.Get("const"); c != nil {
		f.changed("const written as an enum of one")
		list = tree.NewArray(c)
	}
	if list == nil || len(list.Items) == 0 {
		return nil
	}
	if !tree.HoldsNull(list.Items) {
		return list
	}
	items := slices.DeleteFunc(slices.Clone(list.Items), func(v *tree.Node) bool { return v.Kind == tree.Null })
	if len(items) == 0 {
		return nil
	}
	return tree.NewArray(items...)
}

// splitTypes makes one schema for each type, each with the values of it; the
// other keywords of n are ignored where they speak of another type.
func splitTypes(n *tree.Node, types []string) []*tree.Node {
	out := make([]*tree.Node, len(types))
	for i, t := range types {
		out[i] = tree.NewObject(tree.NewMember("type", tree.NewString(t)))
		if enum := n.Get("enum"); enum != nil {
			others := func(v *tree.Node) bool { return !isOf(v, strings.ToLower(t)) }
			out[i].Set("enum", tree.NewArray(slices.DeleteFunc(slices.Clone(enum.Items), others)...))
		}
	}
	if typ := n.Get("type"); typ != nil && typ.Kind == tree.Array && slices.ContainsFunc(typ.Items, isNullName) {
		out = append(out, tree.NullType())
	}
	return out
}

func isOf(v *tree.Node, typ string) bool {
	name := tree.TypeName(v)
	return name == typ || name == "integer" && typ == "number"
}

func isNullName(n *tree.Node) bool { return strings.EqualFold(n.Text(), "null") }

// isNullable reports whether a schema says so in OpenAPI's word.
func isNullable(n *tree.Node) bool {
	word := n.Get("nullable")
	return word != nil && word.Kind == tree.True
}

func newTrue() *tree.Node { return &tree.Node{Kind: tree.True, Token: "true"} }
