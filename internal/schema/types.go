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

// TypeOfWord returns the type of JSON Schema that a word under type means: the type itself in any
// case, as in Gemini's declarations (STRING), or what programmers of other languages write for
// it, such as int. It returns "" for words that mean any type; ok is false if the word means none.
func TypeOfWord(word string) (name string, ok bool) {
	switch word = strings.ToLower(word); word {
	case "any", "mixed":
		return "", true
	case "str", "text", "char", "date", "time", "datetime", "date-time", "uuid", "uri", "url", "email":
		return "string", true
	case "int", "int32", "int64", "long", "short":
		return "integer", true
	case "float", "float32", "float64", "double", "decimal":
		return "number", true
	case "bool":
		return "boolean", true
	case "list", "tuple":
		return "array", true
	case "dict", "map":
		return "object", true
	case "none", "nil":
		return "null", true
	}
	return word, slices.Contains(types, word)
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
