package declare

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// branches returns the alternatives of a schema, nil where it has none.
func branches(n *node) []*node {
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list := n.get(keyword); list != nil && list.kind == kindArray && len(list.items) > 0 {
			return list.items
		}
	}
	return nil
}

// unites reports whether alternatives say what a value is. Where n says so
// itself and they add conditions alone, such as which properties belong
// together, they are left to validation.
func unites(n *node, list []*node) bool {
	if n.get("type") == nil {
		return true
	}
	return slices.ContainsFunc(list, func(b *node) bool {
		return b.get("$ref") != nil || b.get("type") != nil || b.get("properties") != nil || b.get("items") != nil ||
			b.get("enum") != nil || b.get("const") != nil || branches(b) != nil
	})
}

// union rewrites alternatives. anyOf stands alone, as the API wants it, so what
// n says beside it goes into each.
func (f *geminiFitter) union(n *node, list []*node, depth int) (*node, error) {
	if n.get("oneOf") != nil {
		f.changed("oneOf turned into anyOf")
	}
	fitted, null, err := f.alternatives(n, list, depth)
	switch {
	case err != nil:
		return nil, err
	case len(fitted) == 0 && null:
		return newObject(newMember("type", newString("null"))), nil
	case len(fitted) == 0:
		return nil, errFree
	}
	if null || n.get("nullable") != nil && n.get("nullable").kind == kindTrue {
		for _, b := range fitted {
			b.set("nullable", &node{kind: kindTrue, token: "true"})
		}
	}
	fallback := n.get("default")
	if len(fitted) == 1 {
		if fallback != nil && fallback.kind != kindNull && fitted[0].get("default") == nil {
			fitted[0].set("default", fallback)
		}
		return fitted[0], nil
	}
	if fallback != nil {
		f.changed("default beside anyOf dropped")
	}
	return newObject(newMember("anyOf", newArray(fitted...))), nil
}

// alternatives rewrites each of the list; null says that one of them is null
// and no more.
func (f *geminiFitter) alternatives(n *node, list []*node, depth int) (fitted []*node, null bool, err error) {
	for _, branch := range list {
		b, err := f.schema(f.withRest(branch, n), depth+1)
		switch {
		case errors.Is(err, errFree):
			f.lose(err.Error())
		case errors.Is(err, errNone):
		case err != nil:
			return nil, false, err
		case hasType(b, "null"):
			f.changed("null as a type written as nullable")
			null = true
		case b.get("anyOf") != nil:
			fitted = append(fitted, b.get("anyOf").items...)
		default:
			fitted = append(fitted, b)
		}
	}
	return distinct(fitted), null, nil
}

// withRest returns a branch with what stands beside the alternatives.
func (f *geminiFitter) withRest(branch, n *node) *node {
	if branch.kind != kindObject {
		return branch
	}
	f.work += len(branch.members) + len(n.members)
	merged := newObject(slices.Clone(branch.members)...)
	have := byName(merged)
	for _, m := range n.members {
		switch m.name {
		case "anyOf", "oneOf", "default", "nullable", "$defs", "definitions":
			continue
		case "properties":
			if own := have[m.name]; own != nil && own.kind == kindObject && m.value.kind == kindObject {
				merged.set(m.name, f.mergedProperties(m.value, own))
				continue
			}
		case "required":
			if own := have[m.name]; own != nil {
				merged.set(m.name, newArray(slices.Concat(m.value.items, own.items)...))
				continue
			}
		case "type":
			if have["$ref"] != nil || have["anyOf"] != nil || have["oneOf"] != nil || have["enum"] != nil || have["const"] != nil {
				continue // the branch says more than that
			}
		}
		if have[m.name] == nil {
			merged.members = append(merged.members, m)
		}
	}
	return merged
}

// mergedProperties returns the properties of both; those of the second win.
func (f *geminiFitter) mergedProperties(first, second *node) *node {
	f.work += len(first.members) + len(second.members)
	out := newObject(slices.Clone(first.members)...)
	at := make(map[string]int, len(out.members))
	for i, m := range out.members {
		at[m.name] = i
	}
	for _, m := range second.members {
		if i, ok := at[m.name]; ok {
			out.members[i] = m
		} else {
			out.members = append(out.members, m)
		}
	}
	return out
}

// splitTypes makes one schema for each type, each with the keywords that speak
// of it; the others are ignored where they do not.
func splitTypes(n *node, types []string) []*node {
	out := make([]*node, len(types))
	for i, t := range types {
		out[i] = newObject(newMember("type", newString(t)))
		if enum := n.get("enum"); enum != nil {
			out[i].set("enum", newArray(slices.DeleteFunc(slices.Clone(enum.items), func(v *node) bool {
				name := typeName(v)
				return name != lowered(t) && (name != "integer" || lowered(t) != "number")
			})...))
		}
	}
	if typ := n.get("type"); typ != nil && typ.kind == kindArray && slices.ContainsFunc(typ.items, func(t *node) bool { return lowered(t.text()) == "null" }) {
		out = append(out, nullType())
	}
	return out
}

// distinct drops what stands twice.
func distinct(list []*node) []*node {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(n *node) bool {
		text := string(n.appendTo(nil))
		was := seen[text]
		seen[text] = true
		return was
	})
}

// flat returns n with the schemas of allOf as part of it.
func (f *geminiFitter) flat(n *node) *node {
	if n.get("allOf") == nil {
		return n
	}
	n = newObject(slices.Clone(n.members)...)
	for range maxRefChain {
		all := n.get("allOf")
		if all == nil {
			break
		}
		n.remove("allOf")
		f.changed("allOf merged")
		for _, branch := range all.items {
			f.work++
			target, err := f.refs.resolve(branch)
			if err == nil && target.kind == kindObject && !slices.Contains(f.inside, target) {
				f.merge(n, target)
			}
		}
	}
	return n
}

// merge adds what a schema says to n, which has to hold as well.
func (f *geminiFitter) merge(n, more *node) {
	f.work += len(n.members) + len(more.members)
	if f.work > maxFittingWork { // schema ends it
		return
	}
	have := byName(n)
	for _, m := range more.members {
		own := have[m.name]
		switch {
		case own == nil:
			n.members = append(n.members, m)
		case m.name == "properties" && own.kind == kindObject && m.value.kind == kindObject:
			n.set(m.name, f.mergedProperties(m.value, own))
		case (m.name == "required" || m.name == "allOf") && own.kind == kindArray:
			n.set(m.name, newArray(slices.Concat(own.items, m.value.items)...))
		case m.name == "type" && string(own.appendTo(nil)) != string(m.value.appendTo(nil)):
			f.lose("a value of two types at once")
		}
	}
}

// array rewrites what a list holds. The places of a tuple become one schema.
func (f *geminiFitter) array(n, out *node, depth int) error {
	items, places := n.get("items"), n.get("prefixItems")
	rest := items
	if items != nil && items.kind == kindArray {
		places, rest = items, n.get("additionalItems")
	}
	if places != nil {
		f.changed("the places of a tuple written as one schema")
		list := slices.Clone(places.items)
		if rest != nil && rest.kind == kindObject {
			list = append(list, rest)
		} else if rest != nil && rest.kind == kindFalse && out.get("maxItems") == nil {
			out.set("maxItems", &node{kind: kindNumber, token: strconv.Itoa(len(list))})
		}
		items = newObject(newMember("anyOf", newArray(list...)))
	}
	if items == nil {
		items = newObject()
	}
	fitted, err := f.schema(items, depth+1)
	switch {
	case errors.Is(err, errFree):
		return errFree
	case errors.Is(err, errNone): // an empty list is all that is valid
		fitted = f.anything(newObject())
	case err != nil:
		return err
	}
	out.set("items", fitted)
	return nil
}

// copyTexts copies what is said to the model.
func (f *geminiFitter) copyTexts(n, out *node) {
	for i := range n.members {
		if m := &n.members[i]; (m.name == "title" || m.name == "description") && m.value.kind == kindString {
			out.members = append(out.members, *m)
		}
	}
}

// limits copies the keywords that both sides know, and tells which go.
func (f *geminiFitter) limits(n, out *node) {
	typ := lowered(out.get("type").text())
	for i := range n.members {
		m := &n.members[i]
		switch m.name {
		case "exclusiveMinimum", "exclusiveMaximum":
			f.exclusive(n, out, m)
		case "examples":
			if m.value.kind == kindArray && len(m.value.items) > 0 && n.get("example") == nil {
				out.set("example", m.value.items[0])
			}
		case "additionalProperties":
			if m.value.kind == kindFalse {
				f.changed("additionalProperties dropped")
			}
		case "format":
			if geminiFormat(typ, m.value.text()) {
				out.members = append(out.members, *m)
			} else {
				f.changed(fmt.Sprintf("format %.40q dropped", m.value.text()))
			}
		case "pattern", "minimum", "maximum", "default", "example", "propertyOrdering",
			"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties":
			if geminiValue(m) && speaksOf(m.name, typ) {
				out.members = append(out.members, *m)
			}
		default:
			if !geminiKeyword(m.name) && !rewritten(m.name) {
				f.changed(m.name + " dropped")
			}
		}
	}
}

// speaksOf reports whether a keyword says anything of values of a type.
func speaksOf(keyword, typ string) bool {
	switch keyword {
	case "minItems", "maxItems":
		return typ == "array"
	case "minLength", "maxLength", "pattern":
		return typ == "string"
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return typ == "integer" || typ == "number"
	case "minProperties", "maxProperties", "propertyOrdering":
		return typ == "object"
	}
	return true
}

// exclusive writes a limit that a value must not reach as one that it may, which
// is the next one where values are whole.
func (f *geminiFitter) exclusive(n, out *node, m *member) {
	limit := "m" + strings.TrimPrefix(m.name, "exclusiveM")
	typ := lowered(out.get("type").text())
	if m.value.kind != kindNumber || n.get(limit) != nil || !speaksOf(limit, typ) {
		return
	}
	f.changed(m.name + " written as " + limit)
	value := m.value
	if i, err := strconv.ParseInt(value.token, 10, 52); err == nil && typ == "integer" {
		if limit == "minimum" {
			i++
		} else {
			i--
		}
		value = &node{kind: kindNumber, token: strconv.FormatInt(i, 10)}
	}
	out.set(limit, value)
}

// rewritten reports whether the fitter looks at a keyword elsewhere.
func rewritten(name string) bool {
	switch name {
	case "$ref", "$defs", "definitions", "const", "oneOf", "allOf", "prefixItems", "additionalItems":
		return true
	}
	return false
}

// lowered is the name of a type in lower case, as JSON Schema has it.
func lowered(typ string) string { return strings.ToLower(typ) }
