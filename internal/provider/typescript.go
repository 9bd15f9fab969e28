package provider

import (
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/typescript"
	"github.com/toolreg/toolreg/internal/schema"
)

// typescriptFormat writes one function signature per tool, for models that
// write code and for people. Names become identifiers that are not reserved
// words.
func typescriptFormat() Format {
	return Format{
		Name:    "typescript",
		Summary: "TypeScript signatures",
		Text:    true,
		rule:    nameRule{extra: "", letterFirst: true, max: 64, reserved: typescript.Reserved},
		layout:  layout{between: "\n", empty: "// There are no tools to call.\n"},
		write: func(e *encoder, t *tool) {
			e.out = typescript.AppendComment(e.out, "", t.def.Description)
			e.raw("declare function " + t.name + "(")
			if !t.bare {
				e.params(t.schema)
			}
			e.raw("): Promise<")
			e.returned(t)
			e.raw(">;\n")
		},
	}
}

// params writes the function's parameter, an object. It is optional if no property
// is required.
func (e *encoder) params(n *jsonx.Value) {
	refs := schema.NewRefs(n)
	root, err := refs.Resolve(n)
	if err != nil { // cannot happen, because the root was checked
		root = n
	}
	further, p := root.Get("additionalProperties"), root.Get("properties")
	if further.Is(jsonx.False) && len(p.Fields()) == 0 {
		return
	}
	e.raw("params")
	if !requiresAny(refs, root, map[*jsonx.Value]bool{}) {
		e.raw("?")
	}
	e.raw(": ")
	e.out = typescript.AppendType(e.out, n)
}

// requiresAny reports whether an object must have at least one property.
func requiresAny(refs *schema.Refs, s *jsonx.Value, seen map[*jsonx.Value]bool) bool {
	s, err := refs.Resolve(s)
	if err != nil || seen[s] {
		return false
	}
	seen[s] = true // an untrusted schema can refer to itself any number of times
	if len(s.Get("required").Elements()) > 0 {
		return true
	}
	not := func(branch *jsonx.Value) bool { return !requiresAny(refs, branch, seen) }
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list := s.Get(keyword).Elements(); len(list) > 0 && !slices.ContainsFunc(list, not) {
			return true
		}
	}
	return slices.ContainsFunc(s.Get("allOf").Elements(), func(part *jsonx.Value) bool { return !not(part) })
}

// returned writes the return type. The tool's schema must not be used afterwards.
func (e *encoder) returned(t *tool) {
	if len(t.def.OutputSchema) > 0 {
		if n, err := e.object(t.def.OutputSchema); err == nil {
			e.out = typescript.AppendType(e.out, n)
			return
		}
	}
	e.raw("unknown")
}
