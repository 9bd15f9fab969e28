package rewrite

import (
	"strings"

	"github.com/toolreg/toolreg/internal/declare/tree"
)

// LowerTypes writes the types of OpenAPI as Gemini's own declarations spell
// them, STRING, OBJECT and so on, in the words of JSON Schema.
func LowerTypes(root *tree.Node) (changes []string) {
	if lowerType(root) {
		return []string{"types written in lower case"}
	}
	return nil
}

func lowerType(n *tree.Node) (changed bool) {
	if typ := n.Get("type"); typ != nil && typ.Kind == tree.String {
		switch word := typ.Text(); word {
		case "OBJECT", "ARRAY", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "NULL":
			n.Set("type", tree.NewString(strings.ToLower(word)))
			changed = true
		}
	}
	tree.EachSchema(n, func(sub *tree.Node) { changed = lowerType(sub) || changed })
	return changed
}

// ModernWords writes what JSON Schema said otherwise before draft 2020-12 in
// its words: APIs check schemas against that draft and refuse a request that
// holds others.
func ModernWords(root *tree.Node) (changes []string) {
	if modernize(root) {
		return []string{"keywords of older drafts written as in 2020-12"}
	}
	return nil
}

func modernize(n *tree.Node) (changed bool) {
	if items := n.Get("items"); items != nil && items.Kind == tree.Array {
		n.Rename("items", "prefixItems")
		n.Rename("additionalItems", "items")
		changed = true
	}
	changed = exclusiveLimit(n, "minimum", "exclusiveMinimum") || changed
	changed = exclusiveLimit(n, "maximum", "exclusiveMaximum") || changed
	if required := n.Get("required"); required != nil && required.Kind != tree.Array {
		n.Remove("required") // draft 3 said it with a boolean beside each property
		changed = true
	}
	tree.EachSchema(n, func(sub *tree.Node) { changed = modernize(sub) || changed })
	return changed
}

// exclusiveLimit turns the boolean of draft 4 into the limit itself.
func exclusiveLimit(n *tree.Node, limit, exclusive string) bool {
	flag := n.Get(exclusive)
	if flag == nil || flag.Kind != tree.True && flag.Kind != tree.False {
		return false
	}
	n.Remove(exclusive)
	if flag.Kind == tree.True {
		n.Rename(limit, exclusive)
	}
	return true
}
