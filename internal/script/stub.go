package script

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
	"github.com/toolreg/toolreg/internal/text"
)

// maxTypeDepth is how many levels of objects and lists a signature shows.
const maxTypeDepth = 4

// Stub returns the signature of a tool as a line of Python: its params with their types, with = ...
// if they are optional, and the type of its structured result. A tool whose name is not an
// identifier becomes a comment. The same definition always yields the same text.
func Stub(d *registry.Definition) string {
	input, err := jsonx.Parse(d.InputSchema, jsonx.Options{})
	if err != nil {
		input = nil // params unknown
	}
	t := typing{refs: schema.NewRefs(input)}
	required := schema.Required(input)
	var first, later, others []string
	properties := input.Get("properties")
	for _, p := range properties.Fields() {
		written := t.of(p.Value, 0)
		switch {
		case !IsIdentifier(p.Name):
			if !required[p.Name] {
				written = "NotRequired[" + written + "]"
			}
			others = append(others, quoted(p.Name)+": "+written)
		case required[p.Name]:
			first = append(first, p.Name+": "+written)
		default:
			later = append(later, p.Name+": "+written+" = ...")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(required)) {
		switch {
		case properties.Get(name) != nil:
		case IsIdentifier(name):
			first = append(first, name+": Any")
		default:
			others = append(others, quoted(name)+": Any")
		}
	}
	params := append(first, later...)
	if len(others) > 0 {
		params = append(params, "**{"+strings.Join(others, ", ")+"}")
	}
	result := "str"
	if output, err := jsonx.Parse(d.OutputSchema, jsonx.Options{}); err == nil && output.Is(jsonx.Object) {
		result = (&typing{refs: schema.NewRefs(output)}).of(output, 0)
	}
	about := text.Escape(text.Clip(strings.Join(strings.Fields(text.FirstSentence(d.Description)), " "), maxAbout))
	if IsIdentifier(d.Name) && len(others) == 0 {
		line := fmt.Sprintf("def %s(%s) -> %s: ", d.Name, strings.Join(params, ", "), result)
		if about == "" {
			return line + "...\n"
		}
		return line + `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(about) + "\"\n"
	}
	line := fmt.Sprintf("# tools[%s](%s) -> %s", quoted(d.Name), strings.Join(params, ", "), result)
	if about != "" {
		line += ": " + about
	}
	return line + "\n"
}

// maxAbout is the maximum number of bytes of a description in a signature.
const maxAbout = 200

func quoted(s string) string { return string(text.EscapeJSON(jsonx.AppendQuote(nil, s))) }

type typing struct {
	refs *schema.Refs
	open []string // references that are being written
}

func (t *typing) of(s *jsonx.Value, depth int) string {
	if s.Is(jsonx.False) {
		return "None"
	}
	if !s.Is(jsonx.Object) || depth > maxTypeDepth {
		return "Any"
	}
	if ref := s.Get("$ref"); ref != nil {
		return t.reference(ref.Text(), depth)
	}
	if v := s.Get("const"); v != nil {
		return literals([]*jsonx.Value{v})
	}
	if v := s.Get("enum"); v.Is(jsonx.Array) && len(v.Items) > 0 {
		return literals(v.Items)
	}
	for _, union := range []string{"anyOf", "oneOf"} {
		if v := s.Get(union); v.Is(jsonx.Array) && len(v.Items) > 0 {
			var names []string
			for _, one := range v.Items {
				names = append(names, t.of(one, depth))
			}
			return either(names)
		}
	}
	if v := s.Get("allOf"); v.Is(jsonx.Array) && len(v.Items) == 1 && s.Get("type") == nil {
		return t.of(v.Items[0], depth)
	}
	if v := s.Get("type"); v.Is(jsonx.Array) {
		var names []string
		for _, one := range v.Items {
			names = append(names, t.named(one.Text(), s, depth))
		}
		return either(names)
	}
	return t.named(s.Get("type").Text(), s, depth)
}

// named returns the type of a schema with the given JSON type.
func (t *typing) named(name string, s *jsonx.Value, depth int) string {
	switch name {
	case "string":
		return "str"
	case "integer":
		return "int"
	case "number":
		return "float"
	case "boolean":
		return "bool"
	case "null":
		return "None"
	case "array":
		if items := s.Get("items"); items.Is(jsonx.Object) {
			return "list[" + t.of(items, depth+1) + "]"
		}
		return "list"
	case "object":
		return t.object(s, depth)
	}
	if s.Get("properties").Is(jsonx.Object) {
		return t.object(s, depth)
	}
	return "Any"
}

func (t *typing) object(s *jsonx.Value, depth int) string {
	properties := s.Get("properties")
	if !properties.Is(jsonx.Object) || len(properties.Members) == 0 {
		if values := s.Get("additionalProperties"); values.Is(jsonx.Object) {
			return "dict[str, " + t.of(values, depth+1) + "]"
		}
		return "dict"
	}
	if depth == maxTypeDepth {
		return "dict"
	}
	required := schema.Required(s)
	parts := make([]string, len(properties.Members))
	for i, p := range properties.Members {
		written := t.of(p.Value, depth+1)
		if !required[p.Name] {
			written = "NotRequired[" + written + "]"
		}
		parts[i] = quoted(p.Name) + ": " + written
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// reference returns the type of a schema elsewhere in the document.
func (t *typing) reference(ref string, depth int) string {
	target := t.refs.Lookup(ref)
	switch {
	case target == nil || len(t.open) > maxTypeDepth:
		return "Any"
	case slices.Contains(t.open, ref):
		return "dict" // it contains itself
	}
	t.open = append(t.open, ref)
	defer func() { t.open = t.open[:len(t.open)-1] }()
	return t.of(target, depth)
}

// literals returns the type of some values. It leaves out long ones and those after the
// first thirty.
func literals(values []*jsonx.Value) string {
	const most, longest = 30, 200
	var parts []string
	for _, v := range values[:min(len(values), most)] {
		switch v.Kind {
		case jsonx.Null:
			parts = append(parts, "None")
		case jsonx.True:
			parts = append(parts, "True")
		case jsonx.False:
			parts = append(parts, "False")
		case jsonx.Array, jsonx.Object:
			return "Any"
		default:
			if s := string(text.EscapeJSON([]byte(v.Token))); len(s) <= longest {
				parts = append(parts, s)
			}
		}
	}
	if len(parts) < len(values) {
		parts = append(parts, "...")
	}
	return "Literal[" + strings.Join(parts, ", ") + "]"
}

// either returns the union of types, without duplicates.
func either(names []string) string {
	var out []string
	for _, n := range names {
		if n != "" {
			out = text.AppendNew(out, n)
		}
	}
	return strings.Join(out, " | ")
}
