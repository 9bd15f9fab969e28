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
// expect the properties there.
func InlineRoot(root *jsonx.Value) (changes []string) {
	if root.Get("$ref") == nil {
		return nil
	}
	target, err := schema.NewRefs(root).Resolve(root)
	if err != nil || target == root || !target.Is(jsonx.Object) {
		return nil
	}
	merged, have := target.Clone().Members, target.ByName()
	root.Remove("$ref")
	for _, m := range root.Members {
		if have[m.Name] == nil {
			merged = append(merged, m)
		}
	}
	root.Members = merged
	return []string{"the reference at the root replaced by its target"}
}

// FlattenRoot removes the keywords at the root of a schema for which APIs
// refuse the whole request. The properties of branches are kept, so that a
// model knows the params; validation checks which of them belong together.
func FlattenRoot(root *jsonx.Value, refused ...string) (changes []string) {
	f := flattener{refs: schema.NewRefs(root), root: root}
	for _, keyword := range refused {
		list := root.Get(keyword)
		if list == nil {
			continue
		}
		if keyword != "not" && keyword != "enum" {
			for _, branch := range list.Items {
				f.adopt(branch, keyword == "allOf")
			}
		}
		root.Remove(keyword)
		changes = append(changes, keyword+" at the root flattened")
	}
	return changes
}

// flattener moves the properties of branches to the root.
type flattener struct {
	refs       *schema.Refs
	root       *jsonx.Value
	properties map[string]*jsonx.Value // those of the root, nil until needed
	required   map[string]bool
}

// adopt adds the properties of a branch that the root does not have yet.
// Required properties of the branch become required if the branch always
// applies.
func (f *flattener) adopt(branch *jsonx.Value, always bool) {
	branch, err := f.refs.Resolve(branch)
	if err != nil {
		return
	}
	if from := branch.Get("properties"); from.Is(jsonx.Object) {
		f.adoptProperties(from)
	}
	if required := branch.Get("required"); always && required != nil {
		f.adoptRequired(required)
	}
}

func (f *flattener) adoptProperties(from *jsonx.Value) {
	to := f.root.Get("properties")
	if !to.Is(jsonx.Object) {
		to = jsonx.NewObject()
		f.root.Set("properties", to)
	}
	if f.properties == nil {
		f.properties = to.ByName()
	}
	for _, m := range from.Members {
		if f.properties[m.Name] == nil {
			f.properties[m.Name] = m.Value
			to.Members = append(to.Members, jsonx.Member{Name: m.Name, Token: m.Token, Value: m.Value.Clone()})
		}
	}
}

func (f *flattener) adoptRequired(required *jsonx.Value) {
	to := f.root.Get("required")
	if !to.Is(jsonx.Array) {
		to = jsonx.NewArray()
		f.root.Set("required", to)
	}
	if f.required == nil {
		f.required = schema.Required(f.root)
	}
	for _, v := range required.Items {
		if v.Is(jsonx.String) && !f.required[v.Text()] {
			f.required[v.Text()] = true
			to.Items = append(to.Items, v)
		}
	}
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
