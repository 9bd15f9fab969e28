package rewrite

import (
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// CheckRoot returns an error if a schema cannot describe a tool's params, which are
// an object.
func CheckRoot(root *jsonx.Value) error {
	if !root.Is(jsonx.Object) {
		return errors.New("its schema is not an object")
	}
	target, err := schema.NewRefs(root).Resolve(root)
	if err != nil {
		return fmt.Errorf("its schema cannot be resolved: %w", err)
	}
	for _, n := range []*jsonx.Value{root, target} {
		typ := n.Get("type")
		if typ != nil && !schema.HasType(n, "object") && !schema.HasType(n, "OBJECT") {
			return fmt.Errorf("its schema must have type object, not %.40s", typ.AppendTo(nil))
		}
	}
	return nil
}

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

// FillArrays adds items to every array schema without them, because OpenAI would
// reject the request. It reports whether there was one.
func FillArrays(n *jsonx.Value) (changed bool) {
	if schema.HasType(n, "array") && n.Get("items") == nil {
		n.Set("items", jsonx.NewObject())
		changed = true
	}
	for sub := range schema.Within(n) {
		changed = FillArrays(sub) || changed
	}
	return changed
}
