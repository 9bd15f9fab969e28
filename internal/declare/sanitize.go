package declare

import "slices"

// sanitize rewrites a schema in place as the Gemini API of mid-2025 wants it:
// beside anyOf no default; enums are strings without null and make their type
// STRING; a format that is neither enum nor date-time goes from the type
// STRING. Only anyOf, items and properties are walked. It reports what stood in
// the way of walking a part, which then stays as it is.
//
// The steps and their order are those of the Gemini CLI 0.1.15, so that the
// same schema gives the same declaration.
func sanitize(n *node) (broken []string) {
	if n.kind != kindObject {
		return nil
	}
	if anyOf := n.get("anyOf"); truthy(anyOf) {
		n.remove("default")
		if anyOf.kind != kindArray && anyOf.kind != kindString {
			return []string{"anyOf is no list"}
		}
		for _, item := range anyOf.items {
			broken = append(broken, sanitize(item)...)
		}
	}
	if items := n.get("items"); items != nil {
		broken = append(broken, sanitize(items)...)
	}
	if properties := n.get("properties"); properties != nil {
		for i := range properties.members {
			broken = append(broken, sanitize(properties.members[i].value)...)
		}
		for _, item := range properties.items {
			broken = append(broken, sanitize(item)...)
		}
	}
	sanitizeEnum(n)
	if format := n.get("format"); truthy(format) && n.get("type").is("STRING") &&
		!format.is("enum") && !format.is("date-time") {
		n.remove("format")
	}
	return broken
}

func sanitizeEnum(n *node) {
	enum := n.get("enum")
	if enum == nil || enum.kind != kindArray {
		return
	}
	if typ := n.get("type"); !typ.is("STRING") {
		n.set("type", &node{kind: kindString, token: `"STRING"`})
	}
	if !slices.ContainsFunc(enum.items, func(v *node) bool { return v.kind != kindString }) {
		return
	}
	values := make([]*node, 0, len(enum.items))
	for _, v := range enum.items {
		switch v.kind {
		case kindNull:
		case kindString:
			values = append(values, v)
		default:
			values = append(values, newString(scriptString(v)))
		}
	}
	n.set("enum", newArray(values...))
}
