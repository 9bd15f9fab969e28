package gemini

import (
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
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
	if anyOf := n.Get("anyOf"); truthy(anyOf) {
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
	if format := n.Get("format"); truthy(format) && n.Get("type").IsText("STRING") &&
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
			*changes = noted(*changes, "null omitted from an enum")
		case jsonx.String:
			values = append(values, v)
		default:
			*changes = noted(*changes, "values of an enum written as strings")
			values = append(values, jsonx.NewString(String(v)))
		}
	}
	n.Set("enum", jsonx.NewArray(values...))
}
