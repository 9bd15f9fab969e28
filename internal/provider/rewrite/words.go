package rewrite

import (
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// LowerTypes converts the types of Gemini's own declarations, such as STRING and
// OBJECT, to those of JSON Schema.
func LowerTypes(root *jsonx.Value) (changes []string) {
	if lowerType(root) {
		return []string{"types written in lower case"}
	}
	return nil
}

func lowerType(n *jsonx.Value) (changed bool) {
	if typ := n.Get("type"); typ.Is(jsonx.String) {
		switch word := typ.Text(); word {
		case "OBJECT", "ARRAY", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "NULL":
			n.Set("type", jsonx.NewString(strings.ToLower(word)))
			changed = true
		}
	}
	for sub := range schema.Within(n) {
		changed = lowerType(sub) || changed
	}
	return changed
}

// ModernWords converts the syntax of older drafts, because APIs check schemas
// against draft 2020-12 and reject requests with older syntax.
func ModernWords(root *jsonx.Value) (changes []string) {
	if modernize(root) {
		return []string{"keywords of older drafts written as in 2020-12"}
	}
	return nil
}

func modernize(n *jsonx.Value) (changed bool) {
	if items := n.Get("items"); items.Is(jsonx.Array) {
		n.Rename("items", "prefixItems")
		n.Rename("additionalItems", "items")
		changed = true
	}
	changed = exclusiveLimit(n, "minimum", "exclusiveMinimum") || changed
	changed = exclusiveLimit(n, "maximum", "exclusiveMaximum") || changed
	if required := n.Get("required"); required != nil && !required.Is(jsonx.Array) {
		n.Remove("required") // in draft 3, each property had a boolean
		changed = true
	}
	for sub := range schema.Within(n) {
		changed = modernize(sub) || changed
	}
	return changed
}

// exclusiveLimit converts a boolean exclusive limit of draft 4 to a number.
func exclusiveLimit(n *jsonx.Value, limit, exclusive string) bool {
	flag := n.Get(exclusive)
	if !flag.Is(jsonx.True) && !flag.Is(jsonx.False) {
		return false
	}
	n.Remove(exclusive)
	if flag.Is(jsonx.True) {
		n.Rename(limit, exclusive)
	}
	return true
}
