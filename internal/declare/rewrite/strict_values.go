package rewrite

import (
	"slices"

	"github.com/toolreg/toolreg/internal/declare/tree"
)

// object closes an object and makes all its properties required.
func (s *stricter) object(n *tree.Node, depth int) error {
	properties, further := n.Get("properties"), n.Get("additionalProperties")
	named := properties != nil && properties.Kind == tree.Object && len(properties.Members) > 0
	switch {
	case further != nil && further.Kind == tree.Object && len(further.Members) > 0,
		!named && further != nil && further.Kind != tree.False,
		!named && further == nil && n != s.refs.Root:
		return errAnyName
	}
	s.closed = s.closed || further == nil || further.Kind != tree.False
	n.Set("additionalProperties", tree.NewFalse())
	if !named {
		n.Set("properties", tree.NewObject())
		n.Set("required", tree.NewArray())
		return nil
	}
	return s.properties(n, properties, depth)
}

func (s *stricter) properties(n, properties *tree.Node, depth int) error {
	required := tree.NamesIn(n.Get("required"))
	names := make([]*tree.Node, 0, len(properties.Members))
	for i := range properties.Members {
		m := &properties.Members[i]
		if err := s.schema(m.Value, depth+1); err != nil {
			return err
		}
		if !required[m.Name] {
			m.Value = nullable(m.Value)
			s.nullable = append(s.nullable, m.Name)
		}
		names = append(names, &tree.Node{Kind: tree.String, Token: m.Token})
		s.size.name(m.Name)
	}
	s.size.properties += len(names)
	n.Set("required", tree.NewArray(names...))
	return nil
}

// scalar makes sure that a value says of what type it is.
func (s *stricter) scalar(n *tree.Node) error {
	values, constant := n.Get("enum"), n.Get("const")
	if values != nil {
		if err := s.size.enum(values.Items); err != nil {
			return err
		}
	}
	s.size.name(constant.Text())
	if n.Get("type") != nil {
		return nil
	}
	if values == nil && constant != nil {
		values = tree.NewArray(constant)
	}
	if values == nil || len(values.Items) == 0 {
		return errAnyValue
	}
	n.Prepend("type", typesOf(values.Items))
	s.note("type added beside enum")
	return nil
}

// typesOf returns the type of values as a keyword has it: a name, or a list of
// several.
func typesOf(values []*tree.Node) *tree.Node {
	var types []*tree.Node
	for _, v := range values {
		name := tree.TypeName(v)
		if !slices.ContainsFunc(types, func(t *tree.Node) bool { return t.Is(name) }) {
			types = append(types, tree.NewString(name))
		}
	}
	if len(types) == 1 {
		return types[0]
	}
	return tree.NewArray(types...)
}

// nullable returns a schema that also takes null.
func nullable(n *tree.Node) *tree.Node {
	typ, anyOf := n.Get("type"), n.Get("anyOf")
	switch {
	case anyOf != nil && typ == nil:
		if !slices.ContainsFunc(anyOf.Items, func(b *tree.Node) bool { return tree.HasType(b, "null") }) {
			n.Set("anyOf", with(anyOf, tree.NullType()))
		}
		return n
	case typ == nil || anyOf != nil || n.Get("const") != nil:
		return tree.NewObject(tree.NewMember("anyOf", tree.NewArray(n, tree.NullType())))
	case tree.HasType(n, "null"):
	case typ.Kind == tree.Array:
		n.Set("type", with(typ, tree.NewString("null")))
	default:
		n.Set("type", tree.NewArray(typ, tree.NewString("null")))
	}
	if enum := n.Get("enum"); enum != nil && !tree.HoldsNull(enum.Items) {
		n.Set("enum", with(enum, tree.NewNull()))
	}
	return n
}

// with returns a list with one more item.
func with(list, item *tree.Node) *tree.Node {
	return tree.NewArray(append(slices.Clone(list.Items), item)...)
}

// mergeable reports whether the only branch of an allOf can take its parent's
// place without the two saying different things.
func mergeable(n, branch *tree.Node) bool {
	if branch.Kind != tree.Object {
		return false
	}
	have := tree.ByName(n)
	for _, m := range branch.Members {
		if have[m.Name] != nil {
			return false
		}
	}
	return true
}
