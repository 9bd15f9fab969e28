package rewrite

import (
	"errors"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// object closes an object and makes all its properties required.
func (s *stricter) object(n *jsonx.Value, depth int) error {
	properties, further := n.Get("properties"), n.Get("additionalProperties")
	named := properties.Is(jsonx.Object) && len(properties.Members) > 0
	switch {
	case further.Is(jsonx.Object) && len(further.Members) > 0,
		!named && further != nil && !further.Is(jsonx.False),
		!named && further == nil && n != s.refs.Root():
		return errAnyName
	}
	s.closed = s.closed || !further.Is(jsonx.False)
	n.Set("additionalProperties", jsonx.NewBool(false))
	if !named {
		n.Set("properties", jsonx.NewObject())
		n.Set("required", jsonx.NewArray())
		return nil
	}
	return s.properties(n, properties, depth)
}

// properties rewrites the properties of an object and makes them required.
func (s *stricter) properties(n, properties *jsonx.Value, depth int) error {
	required := schema.Required(n)
	names := make([]*jsonx.Value, 0, len(properties.Members))
	for i := range properties.Members {
		m := &properties.Members[i]
		if err := s.schema(m.Value, depth+1); err != nil {
			return err
		}
		switch {
		case required[m.Name]:
		case s.grammar:
			s.found.Optional++
			continue
		default:
			m.Value = nullable(m.Value)
			s.nullable = append(s.nullable, m.Name)
		}
		names = append(names, jsonx.NewString(m.Name))
		s.size.name(m.Name)
	}
	s.size.properties += len(names)
	n.Set("required", jsonx.NewArray(names...))
	return nil
}

// scalar ensures that a value has a type.
func (s *stricter) scalar(n *jsonx.Value) error {
	values, constant := n.Get("enum"), n.Get("const")
	if s.grammar && (isCompound(constant) || values != nil && slices.ContainsFunc(values.Items, isCompound)) {
		return errors.New("an enum or const in it has objects or arrays")
	}
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
		values = jsonx.NewArray(constant)
	}
	if values == nil || len(values.Items) == 0 {
		return errAnyValue
	}
	n.Prepend("type", typesOf(values.Items))
	s.note("type added next to enum")
	return nil
}

func isCompound(v *jsonx.Value) bool { return v.Is(jsonx.Object) || v.Is(jsonx.Array) }

// typesOf returns the types of values as a value of the keyword type.
func typesOf(values []*jsonx.Value) *jsonx.Value {
	var types []*jsonx.Value
	for _, v := range values {
		name := schema.TypeOf(v)
		if !slices.ContainsFunc(types, func(t *jsonx.Value) bool { return t.IsText(name) }) {
			types = append(types, jsonx.NewString(name))
		}
	}
	if len(types) == 1 {
		return types[0]
	}
	return jsonx.NewArray(types...)
}

// nullable returns a schema that also accepts null.
func nullable(n *jsonx.Value) *jsonx.Value {
	typ, anyOf := n.Get("type"), n.Get("anyOf")
	switch {
	case anyOf != nil && typ == nil:
		if !slices.ContainsFunc(anyOf.Items, func(b *jsonx.Value) bool { return schema.HasType(b, "null") }) {
			n.Set("anyOf", with(anyOf, schema.OfType("null")))
		}
		return n
	case typ == nil || anyOf != nil || n.Get("const") != nil:
		return jsonx.NewObject(jsonx.NewMember("anyOf", jsonx.NewArray(n, schema.OfType("null"))))
	case schema.HasType(n, "null"):
	case typ.Is(jsonx.Array):
		n.Set("type", with(typ, jsonx.NewString("null")))
	default:
		n.Set("type", jsonx.NewArray(typ, jsonx.NewString("null")))
	}
	if enum := n.Get("enum"); enum != nil && !schema.HoldsNull(enum.Items) {
		n.Set("enum", with(enum, jsonx.NewNull()))
	}
	return n
}

// with returns a list with another item.
func with(list, item *jsonx.Value) *jsonx.Value {
	return jsonx.NewArray(append(slices.Clone(list.Items), item)...)
}

// mergeable reports whether the only branch of an allOf can be merged into its
// parent without contradictions.
func mergeable(n, branch *jsonx.Value) bool {
	if !branch.Is(jsonx.Object) {
		return false
	}
	have := n.ByName()
	for _, m := range branch.Members {
		if have[m.Name] != nil {
			return false
		}
	}
	return true
}
