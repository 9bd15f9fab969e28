package rewrite

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// CheckValid returns an error if a schema is not valid in draft 2020-12. APIs check
// this too, and one invalid schema makes them reject the whole request.
func CheckValid(root *jsonx.Value) error {
	if at, problem := invalid(root); problem != "" {
		return fmt.Errorf("its schema is not valid: %q %s", at, problem)
	}
	return nil
}

// invalid returns the JSON pointer to an invalid part of a schema and the problem,
// or "" if the schema is valid.
func invalid(s *jsonx.Value) (at, problem string) {
	if s.Is(jsonx.True) || s.Is(jsonx.False) {
		return "", ""
	}
	if !s.Is(jsonx.Object) {
		return "", "is " + s.Kind.String() + ", not a schema"
	}
	for _, m := range s.Members {
		if at, problem = invalidKeyword(m.Name, m.Value); problem != "" {
			return "/" + jsonx.EscapeToken(m.Name) + at, problem
		}
	}
	return "", ""
}

func invalidKeyword(keyword string, v *jsonx.Value) (at, problem string) {
	switch schema.Under(keyword) {
	case schema.Named:
		if !v.Is(jsonx.Object) {
			return "", "is " + v.Kind.String() + ", not an object"
		}
		for _, m := range v.Members {
			if keyword == "dependencies" && m.Value.Is(jsonx.Array) {
				continue
			}
			if at, problem = invalid(m.Value); problem != "" {
				return "/" + jsonx.EscapeToken(m.Name) + at, problem
			}
		}
	case schema.Schemas:
		if slices.Contains([]string{"anyOf", "oneOf", "allOf", "prefixItems"}, keyword) {
			return invalidList(v)
		}
		if keyword != "additionalItems" { // not a keyword of this draft
			return invalid(v)
		}
	default:
		return "", invalidValue(keyword, v)
	}
	return "", ""
}

func invalidList(v *jsonx.Value) (at, problem string) {
	if !v.Is(jsonx.Array) || len(v.Items) == 0 {
		return "", "is not a list of schemas"
	}
	for i, item := range v.Items {
		if at, problem = invalid(item); problem != "" {
			return "/" + strconv.Itoa(i) + at, problem
		}
	}
	return "", ""
}

// types are the possible values of the keyword type.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// invalidValue checks a keyword whose value contains no schemas.
func invalidValue(keyword string, v *jsonx.Value) string {
	ok, want := true, ""
	switch keyword {
	case "type":
		isType := func(v *jsonx.Value) bool { return v.Is(jsonx.String) && slices.Contains(types, v.Text()) }
		ok, want = isType(v) || len(v.Items) > 0 && isSet(v, isType), "is not a type or a list of types"
	case "required":
		ok, want = isSet(v, func(v *jsonx.Value) bool { return v.Is(jsonx.String) }), "is not a list of different names"
	case "enum", "examples":
		ok, want = v.Is(jsonx.Array), "is not a list"
	case "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum":
		ok, want = v.Is(jsonx.Number), "is not a number"
	case "multipleOf":
		n, err := strconv.ParseFloat(v.Token, 64)
		ok, want = v.Is(jsonx.Number) && err == nil && n > 0, "is not a positive number"
	case "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "maxContains", "minContains":
		n, err := strconv.ParseFloat(v.Token, 64)
		ok, want = v.Is(jsonx.Number) && err == nil && n >= 0 && n == math.Trunc(n), "is not a non-negative integer"
	case "pattern", "format", "title", "description", "$ref", "$schema", "$id", "$anchor", "$comment":
		ok, want = v.Is(jsonx.String), "is not a string"
	case "uniqueItems", "deprecated", "readOnly", "writeOnly":
		ok, want = v.Is(jsonx.True) || v.Is(jsonx.False), "is not a boolean"
	}
	if ok {
		return ""
	}
	return want
}

// isSet reports whether a value is a list of different elements.
func isSet(v *jsonx.Value, element func(*jsonx.Value) bool) bool {
	if !v.Is(jsonx.Array) {
		return false
	}
	seen := make(map[string]bool, len(v.Items))
	for _, item := range v.Items {
		if !element(item) || seen[item.Text()] {
			return false
		}
		seen[item.Text()] = true
	}
	return true
}

// ObjectProperties rewrites properties whose schema is true or false as equivalent
// objects. Some MCP clients expect objects there and otherwise reject the whole
// list of tools.
func ObjectProperties(root *jsonx.Value) (changes []string) {
	if objectProperties(root) {
		return []string{"properties of true or false written as objects"}
	}
	return nil
}

func objectProperties(n *jsonx.Value) (changed bool) {
	if properties := n.Get("properties"); properties.Is(jsonx.Object) {
		for i := range properties.Members {
			switch v := &properties.Members[i].Value; {
			case (*v).Is(jsonx.True):
				*v, changed = jsonx.NewObject(), true
			case (*v).Is(jsonx.False):
				*v, changed = jsonx.NewObject(jsonx.NewMember("not", jsonx.NewObject())), true
			}
		}
	}
	for sub := range schema.Within(n) {
		changed = objectProperties(sub) || changed
	}
	return changed
}
