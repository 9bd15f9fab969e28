package rewrite

import (
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// CheckRoot returns why a schema cannot be that of a tool's params: the value
// that it describes must be an object.
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
			return fmt.Errorf("its schema describes %.40s, not an object", typ.AppendTo(nil))
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

// InlineRoot replaces a reference at the root by its target, for APIs that
// expect the properties there. Keywords next to the reference apply too.
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
		case m.Name == "$defs", m.Name == "definitions": // references lead to those of the root
			merged.Set(m.Name, m.Value)
		case m.Name != "$ref" && have[m.Name] == nil:
			merged.Members = append(merged.Members, m)
		}
	}
	root.Members = merged.Members
	return []string{"the reference at the root replaced by its target"}
}

// FillArrays adds items to every array schema without them, for which OpenAI
// would refuse the request, and reports whether there was one.
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
