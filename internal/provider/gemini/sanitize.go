package gemini

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// Sanitize rewrites a schema in place for the Gemini API of mid-2025: it removes
// default next to anyOf; makes enums strings without null and of type STRING; and
// removes formats other than enum and date-time from the type STRING. It visits
// only anyOf, items and properties. It returns descriptions of the changes to the
// values of enums, and false if it could not visit the whole schema; a schema whose
// anyOf is not a list is not changed.
//
// The steps and their order are those of Gemini CLI 0.1.15, so that the same schema
// results in the same declaration.
func Sanitize(n *jsonx.Value) (changes []string, whole bool) {
	whole = sanitize(n, &changes)
	return changes, whole
}

func sanitize(n *jsonx.Value, changes *[]string) (whole bool) {
	if !n.Is(jsonx.Object) {
		return true
	}
	whole = true
	if anyOf := n.Get("anyOf"); isTruthy(anyOf) {
		n.Remove("default")
		if !anyOf.Is(jsonx.Array) && !anyOf.Is(jsonx.String) {
			return false
		}
		whole = sanitizeAll(anyOf, changes)
	}
	if items := n.Get("items"); items != nil {
		whole = sanitize(items, changes) && whole
	}
	if properties := n.Get("properties"); properties != nil {
		whole = sanitizeAll(properties, changes) && whole
	}
	sanitizeEnum(n, changes)
	if format := n.Get("format"); isTruthy(format) && n.Get("type").IsText("STRING") &&
		!format.IsText("enum") && !format.IsText("date-time") {
		n.Remove("format")
	}
	return whole
}

// sanitizeAll sanitizes the elements of a list or an object.
func sanitizeAll(n *jsonx.Value, changes *[]string) (whole bool) {
	whole = true
	for i := range n.Members {
		whole = sanitize(n.Members[i].Value, changes) && whole
	}
	for _, item := range n.Items {
		whole = sanitize(item, changes) && whole
	}
	return whole
}

// sanitizeEnum rewrites the values of an enum as strings.
func sanitizeEnum(n *jsonx.Value, changes *[]string) {
	enum := n.Get("enum")
	if !enum.Is(jsonx.Array) {
		return
	}
	if typ := n.Get("type"); !typ.IsText("STRING") {
		n.Set("type", &jsonx.Value{Kind: jsonx.String, Token: `"STRING"`})
	}
	if !slices.ContainsFunc(enum.Items, func(v *jsonx.Value) bool { return !v.Is(jsonx.String) }) {
		return
	}
	values := make([]*jsonx.Value, 0, len(enum.Items))
	for _, v := range enum.Items {
		switch v.Kind {
		case jsonx.Null:
			*changes = addNote(*changes, "null omitted from an enum")
		case jsonx.String:
			values = append(values, v)
		default:
			*changes = addNote(*changes, "values of an enum written as strings")
			values = append(values, jsonx.NewString(String(v)))
		}
	}
	n.Set("enum", jsonx.NewArray(values...))
}

// isTruthy reports whether a value is true in a JavaScript condition. A missing value
// is not.
func isTruthy(n *jsonx.Value) bool {
	if n == nil {
		return false
	}
	switch n.Kind {
	case jsonx.Null, jsonx.False:
		return false
	case jsonx.String:
		return n.Token != `""`
	case jsonx.Number:
		f, _ := strconv.ParseFloat(n.Token, 64) // infinite if out of range, which is true
		return f != 0
	}
	return true
}

// String returns the result of JavaScript's String() for a JSON value. Values of an
// enum are declared with it.
func String(n *jsonx.Value) string {
	switch n.Kind {
	case jsonx.String:
		return n.Text()
	case jsonx.Number:
		return scriptNumber(n.Token)
	case jsonx.Object:
		return "[object Object]"
	case jsonx.Array:
		parts := make([]string, len(n.Items))
		for i, v := range n.Items {
			if !v.Is(jsonx.Null) {
				parts[i] = String(v)
			}
		}
		return strings.Join(parts, ",")
	}
	return n.Token
}

// scriptNumber formats a JSON number as JavaScript would after parsing it
// (ECMA-262, Number::toString): the shortest digits of the same double, with an
// exponent from 1e21 and below 1e-6.
func scriptNumber(token string) string {
	f, _ := strconv.ParseFloat(token, 64)
	switch {
	case f == 0:
		return "0" // for -0, too
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	text, _ := json.Marshal(f) // which writes other numbers the same way
	return string(text)
}

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

// OddNames returns the names of properties, at any depth, that the documentation of
// Vertex AI does not allow. Allowed are at most 64 letters, digits and underscores,
// beginning with a letter or an underscore.
func OddNames(root *jsonx.Value) []string {
	var odd []string
	schema.Walk(root, func(n *jsonx.Value) {
		for _, m := range n.Get("properties").Fields() {
			if !isPlain(m.Name) && !slices.Contains(odd, m.Name) {
				odd = append(odd, m.Name)
			}
		}
	})
	return odd
}

func isPlain(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// Respell rewrites a document in place as JavaScript would write it after parsing
// it: numbers as doubles, strings with as few escapes as possible, and keys that
// are array indexes first, in order.
func Respell(n *jsonx.Value) {
	switch n.Kind {
	case jsonx.Number:
		n.Token = scriptNumber(n.Token)
	case jsonx.String:
		n.Token = jsonx.Quote(n.Text())
	case jsonx.Array:
		for _, item := range n.Items {
			Respell(item)
		}
	case jsonx.Object:
		for i := range n.Members {
			Respell(n.Members[i].Value)
		}
		slices.SortStableFunc(n.Members,
			func(a, b jsonx.Member) int { return cmp.Compare(keyOrder(a.Name), keyOrder(b.Name)) })
	}
}

// keyOrder returns the position of a key in JavaScript's order: indexes by number,
// before all other keys.
func keyOrder(key string) uint64 {
	const behind = 1<<32 - 1
	i, err := strconv.ParseUint(key, 10, 64)
	if err != nil || i >= behind || strconv.FormatUint(i, 10) != key {
		return behind
	}
	return i
}
