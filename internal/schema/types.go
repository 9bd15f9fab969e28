package schema

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// OfType returns a schema that only restricts the type.
func OfType(name string) *jsonx.Value {
	return jsonx.NewObject(jsonx.NewMember("type", jsonx.NewString(name)))
}

// HasType reports whether the type keyword of s includes name.
func HasType(s *jsonx.Value, name string) bool {
	typ := s.Get("type")
	if !typ.Is(jsonx.Array) {
		return typ.IsText(name)
	}
	return slices.ContainsFunc(typ.Items, func(t *jsonx.Value) bool { return t.IsText(name) })
}

// TypeOf returns the type of a value as in the type keyword; a number is an
// integer if it is written as one.
func TypeOf(v *jsonx.Value) string {
	switch v.Kind {
	case jsonx.Object:
		return "object"
	case jsonx.Array:
		return "array"
	case jsonx.String:
		return "string"
	case jsonx.Number:
		if strings.ContainsAny(v.Token, ".eE") {
			return "number"
		}
		return "integer"
	case jsonx.Null:
		return "null"
	}
	return "boolean"
}

// HoldsNull reports whether values contains null.
func HoldsNull(values []*jsonx.Value) bool {
	return slices.ContainsFunc(values, func(v *jsonx.Value) bool { return v.Is(jsonx.Null) })
}

// Required returns the names of the properties that s requires.
func Required(s *jsonx.Value) map[string]bool {
	list := s.Get("required")
	if list == nil {
		return nil
	}
	names := make(map[string]bool, len(list.Items))
	for _, v := range list.Items {
		names[v.Text()] = true
	}
	return names
}
