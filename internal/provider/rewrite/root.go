package rewrite

import (
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// TypeRoot adds "type":"object" at the root, as MCP and every API based on JSON
// Schema requires. It returns its changes.
func TypeRoot(root *jsonx.Value) (changes []string) {
	typ := root.Get("type")
	switch {
	case typ == nil:
		root.Prepend("type", jsonx.NewString("object"))
		return []string{`"type":"object" added at the root`}
	case typ.Is(jsonx.Array):
		root.Set("type", jsonx.NewString("object"))
		return []string{"type at the root narrowed to object"}
	}
	return nil
}

// InlineRoot replaces a reference at the root with its target, for APIs that expect
// the properties there. Keywords next to the reference are merged.
func InlineRoot(root *jsonx.Value) (changes []string) {
	if root.Get("$ref") == nil {
		return nil
	}
	target, err := schema.NewRefs(root).Resolve(root)
	if err != nil || target == root || !target.Is(jsonx.Object) {
		return nil
	}
	merged, have := target.Clone(), target.ByName()
	for _, m := range root.Members {
		switch {
		case m.Name == "$defs", m.Name == "definitions": // the definitions of the root are kept, since references resolve to them
			merged.Set(m.Name, m.Value)
		case m.Name != "$ref" && have[m.Name] == nil:
			merged.Members = append(merged.Members, m)
		}
	}
	root.Members = merged.Members
	return []string{"the reference at the root replaced by its target"}
}

// ForOpenAI adds items to every array schema without them, and writes additionalProperties that are an empty
// schema as true, because OpenAI would reject the request.
func ForOpenAI(root *jsonx.Value) (changes []string) {
	arrays, open := false, false
	var fill func(n *jsonx.Value)
	fill = func(n *jsonx.Value) {
		if schema.HasType(n, "array") && n.Get("items") == nil {
			n.Set("items", jsonx.NewObject())
			arrays = true
		}
		if more := n.Get("additionalProperties"); more.Is(jsonx.Object) && len(more.Members) == 0 {
			n.Set("additionalProperties", jsonx.NewBool(true))
			open = true
		}
		for sub := range schema.Within(n) {
			fill(sub)
		}
	}
	fill(root)
	if arrays {
		changes = append(changes, "items added to arrays that had none")
	}
	if open {
		changes = append(changes, "additionalProperties of {} written as true")
	}
	return changes
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
