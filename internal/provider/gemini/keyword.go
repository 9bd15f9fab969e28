package gemini

import (
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// isKeyword reports whether the type Schema has a field of that name.
func isKeyword(name string) bool {
	switch name {
	case "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required",
		"minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering",
		"default", "items", "minimum", "maximum":
		return true
	}
	return false
}

// takesValue reports whether the value of a keyword has the kind that the field
// requires.
func takesValue(m *jsonx.Member) bool {
	v := m.Value
	switch m.Name {
	case "format", "title", "description", "pattern":
		return v.Is(jsonx.String)
	case "nullable":
		return v.Is(jsonx.True) || v.Is(jsonx.False)
	case "enum", "required", "anyOf", "propertyOrdering":
		return v.Is(jsonx.Array)
	case "properties":
		return v.Is(jsonx.Object)
	case "minimum", "maximum":
		return v.Is(jsonx.Number)
	case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties":
		_, err := strconv.ParseUint(v.Token, 10, 63)
		return err == nil
	}
	return true
}

// isType reports whether the API's enum Type has a name, ignoring case.
func isType(name string) bool {
	switch strings.ToLower(name) {
	case "string", "number", "integer", "boolean", "array", "object", "null":
		return true
	}
	return false
}

// takesFormat reports whether a format is valid for a type. Newer endpoints accept
// more formats of strings; for those, endpoints of 2025 reject the whole request.
func takesFormat(typ, format string) bool {
	switch typ {
	case "string":
		return format == "enum" || format == "date-time"
	case "number":
		return format == "float" || format == "double"
	case "integer":
		return format == "int32" || format == "int64"
	}
	return true
}

// appliesTo reports whether a keyword applies to values of a type.
func appliesTo(keyword, typ string) bool {
	switch keyword {
	case "minItems", "maxItems":
		return typ == "array"
	case "minLength", "maxLength", "pattern":
		return typ == "string"
	case "minimum", "maximum":
		return typ == "integer" || typ == "number"
	case "minProperties", "maxProperties", "propertyOrdering":
		return typ == "object"
	}
	return true
}
