package declare

import (
	"errors"
	"fmt"
	"strings"
)

// checkRoot reports why a schema cannot be that of a tool's params: the value
// it describes must be an object.
func checkRoot(root *node) error {
	if root.kind != kindObject {
		return errors.New("its schema is no object")
	}
	target, err := newResolver(root).resolve(root)
	if err != nil {
		return fmt.Errorf("its schema cannot be followed: %w", err)
	}
	for _, n := range []*node{root, target} {
		typ := n.get("type")
		if typ != nil && !hasType(n, "object") && !hasType(n, "OBJECT") {
			return fmt.Errorf("its schema describes %.40s, not an object", typ.appendTo(nil))
		}
	}
	return nil
}

// lowerTypes writes the types of OpenAPI as Gemini's own declarations spell
// them, STRING, OBJECT and so on, in the words of JSON Schema.
func lowerTypes(root *node) (changes []string) {
	if lowerType(root) {
		return []string{"types written in lower case"}
	}
	return nil
}

func lowerType(n *node) (changed bool) {
	if typ := n.get("type"); typ != nil && typ.kind == kindString {
		switch word := typ.text(); word {
		case "OBJECT", "ARRAY", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "NULL":
			n.set("type", newString(strings.ToLower(word)))
			changed = true
		}
	}
	eachSchema(n, func(sub *node) { changed = lowerType(sub) || changed })
	return changed
}

// typedRoot makes "type":"object" stand at the root, as MCP and every JSON
// Schema based API ask for. It returns what it changed.
func typedRoot(root *node) (changes []string) {
	typ := root.get("type")
	switch {
	case typ == nil:
		root.prepend("type", newString("object"))
		return []string{`"type":"object" added at the root`}
	case typ.kind == kindArray:
		root.set("type", newString("object"))
		return []string{"type at the root narrowed to object"}
	}
	return nil
}

// inlinedRoot replaces a reference at the root by its target, for APIs that
// look for the properties there.
func inlinedRoot(root *node) (changes []string) {
	if root.get("$ref") == nil {
		return nil
	}
	target, err := newResolver(root).resolve(root)
	if err != nil || target == root || target.kind != kindObject {
		return nil
	}
	merged, have := target.clone().members, byName(target)
	root.remove("$ref")
	for _, m := range root.members {
		if have[m.name] == nil {
			merged = append(merged, m)
		}
	}
	root.members = merged
	return []string{"the reference at the root replaced by its target"}
}

// flatRoot removes the keywords that APIs refuse at the root of a schema, and
// with it the whole request. What the branches say of properties is kept, so
// that a model knows the params; which belong together is left to validation.
func flatRoot(root *node, refused ...string) (changes []string) {
	f := flattener{refs: newResolver(root), root: root}
	for _, keyword := range refused {
		list := root.get(keyword)
		if list == nil {
			continue
		}
		if keyword != "not" && keyword != "enum" {
			for _, branch := range list.items {
				f.adopt(branch, keyword == "allOf")
			}
		}
		root.remove(keyword)
		changes = append(changes, keyword+" at the root flattened")
	}
	return changes
}

// flattener moves what branches say of properties to the root.
type flattener struct {
	refs       *resolver
	root       *node
	properties map[string]*node // those of the root, nil until needed
	required   map[string]bool
}

// adopt adds the properties of a branch that the root does not have yet; what
// the branch requires is required where the branch always holds.
func (f *flattener) adopt(branch *node, always bool) {
	branch, err := f.refs.resolve(branch)
	if err != nil {
		return
	}
	if from := branch.get("properties"); from != nil && from.kind == kindObject {
		f.adoptProperties(from)
	}
	if required := branch.get("required"); always && required != nil {
		f.adoptRequired(required)
	}
}

func (f *flattener) adoptProperties(from *node) {
	to := f.root.get("properties")
	if to == nil || to.kind != kindObject {
		to = newObject()
		f.root.set("properties", to)
	}
	if f.properties == nil {
		f.properties = byName(to)
	}
	for _, m := range from.members {
		if f.properties[m.name] == nil {
			f.properties[m.name] = m.value
			to.members = append(to.members, member{name: m.name, token: m.token, value: m.value.clone()})
		}
	}
}

func (f *flattener) adoptRequired(required *node) {
	to := f.root.get("required")
	if to == nil || to.kind != kindArray {
		to = newArray()
		f.root.set("required", to)
	}
	if f.required == nil {
		f.required = namesIn(to)
	}
	for _, v := range required.items {
		if v.kind == kindString && !f.required[v.text()] {
			f.required[v.text()] = true
			to.items = append(to.items, v)
		}
	}
}

// modernWords writes what JSON Schema said otherwise before draft 2020-12 in
// its words: APIs check schemas against that draft and refuse a request that
// holds others.
func modernWords(root *node) (changes []string) {
	if modernize(root) {
		return []string{"keywords of older drafts written as in 2020-12"}
	}
	return nil
}

func modernize(n *node) (changed bool) {
	if items := n.get("items"); items != nil && items.kind == kindArray {
		n.rename("items", "prefixItems")
		n.rename("additionalItems", "items")
		changed = true
	}
	changed = exclusiveLimit(n, "minimum", "exclusiveMinimum") || changed
	changed = exclusiveLimit(n, "maximum", "exclusiveMaximum") || changed
	if required := n.get("required"); required != nil && required.kind != kindArray {
		n.remove("required") // draft 3 said it with a boolean beside each property
		changed = true
	}
	eachSchema(n, func(sub *node) { changed = modernize(sub) || changed })
	return changed
}

// exclusiveLimit turns the boolean of draft 4 into the limit itself.
func exclusiveLimit(n *node, limit, exclusive string) bool {
	flag := n.get(exclusive)
	if flag == nil || flag.kind != kindTrue && flag.kind != kindFalse {
		return false
	}
	n.remove(exclusive)
	if flag.kind == kindTrue {
		n.rename(limit, exclusive)
	}
	return true
}

// filledArrays gives every array schema its items, without which OpenAI
// refuses the request.
func filledArrays(n *node) (changed bool) {
	if hasType(n, "array") && n.get("items") == nil {
		n.set("items", newObject())
		changed = true
	}
	eachSchema(n, func(sub *node) { changed = filledArrays(sub) || changed })
	return changed
}

// joined says in one sentence what was changed.
func joined(changes []string) string { return strings.Join(changes, "; ") }
