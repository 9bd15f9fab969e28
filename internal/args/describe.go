package args

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
)

// Param describes one param of a tool according to its input schema. The text may
// be untrusted.
type Param struct {
	Name        string // as in arguments; a nested param is "page.size"
	Type        string // "integer", "string[]", "string|null"; "any" if the schema does not say
	Required    bool
	Default     string   // "" if there is none; strings are not quoted
	Allowed     string   // allowed values in words; "" means any of the type
	Values      []string // all possible values of an enum or a boolean
	Example     []string // arguments, such as "limit=10"
	Description string
}

// maxParams is the maximum number of params to describe.
const maxParams = 500

// Describe returns the params of a tool in the order of its schema. Nested params
// follow their object.
func Describe(def *registry.Definition) []Param {
	d := describer{types: newTypes(def.InputSchema)}
	for _, e := range def.Examples {
		if v, err := jsonx.Parse(e.Params, jsonx.Options{}); err == nil {
			d.examples = append(d.examples, v)
		}
	}
	d.object(d.types.refs.Root(), nil, true, visited{})
	return d.params
}

// describer collects the params of one schema.
type describer struct {
	types    types
	examples []*jsonx.Value
	params   []Param
}

// maxDescribed is the maximum depth of nested params to describe.
const maxDescribed = 3

// object describes the properties of s and of the schemas that apply with it.
// required says whether the object itself is required.
func (d *describer) object(s *jsonx.Value, path []string, required bool, seen visited) {
	s, err := d.types.refs.Resolve(s)
	if err != nil || !seen.first(s) {
		return
	}
	needed := schema.Required(s)
	if properties := s.Get("properties"); properties != nil {
		for _, m := range properties.Members {
			at := append(slices.Clone(path), m.Name)
			name := strings.Join(at, ".")
			if len(d.params) >= maxParams || slices.ContainsFunc(d.params, func(p Param) bool { return p.Name == name }) {
				continue
			}
			must := required && needed[m.Name]
			d.params = append(d.params, d.param(m.Value, at, must))
			if len(at) < maxDescribed {
				d.object(m.Value, at, must, visited{})
			}
		}
	}
	always := s.Get("allOf")
	for _, alternative := range alternatives(s) {
		d.object(alternative, path, required && always.Is(jsonx.Array) && slices.Contains(always.Items, alternative), seen)
	}
}

func (d *describer) param(s *jsonx.Value, path []string, required bool) Param {
	typ := d.types.typeOf(s, 0)
	p := Param{Name: strings.Join(path, "."), Type: typ.String(), Required: required, Values: typ.values()}
	resolved, err := d.types.refs.Resolve(s)
	if err != nil {
		resolved = nil
	}
	p.Description = cmp.Or(s.Get("description").Text(), resolved.Get("description").Text())
	if v := resolved.Get("default"); v != nil {
		p.Default = plain(v)
	}
	p.Allowed = d.allowed(resolved, typ)
	if v := d.example(resolved, typ, path); v != nil {
		p.Example = d.types.argument(p.Name, v)
	}
	return p
}

// example returns a possible value of the param: one from the tool's examples or
// the schema, or else a small value of its type. It returns nil if there is none.
func (d *describer) example(s *jsonx.Value, typ schemaType, path []string) *jsonx.Value {
	for _, e := range d.examples {
		for _, key := range path {
			e = e.Get(key)
		}
		if e != nil {
			return e
		}
	}
	if list := s.Get("examples"); list != nil && len(list.Items) > 0 {
		return list.Items[0]
	}
	if v := s.Get("example"); v != nil {
		return v
	}
	if v := s.Get("default"); v != nil && !v.Is(jsonx.Null) {
		return v
	}
	if typ.isList() {
		return jsonx.NewArray(typ.item(0).sample(nil))
	}
	return typ.sample(s)
}

// sample returns a value of a type that is within the bounds and format of the
// schema of, which may be nil.
func (s schemaType) sample(of *jsonx.Value) *jsonx.Value {
	if len(s.enum) > 0 {
		return s.enum[0]
	}
	if len(s.names) == 0 {
		return jsonx.NewString("TEXT")
	}
	switch s.names[0] {
	case "integer", "number":
		if least := of.Get("minimum"); least != nil {
			return least
		}
		return &jsonx.Value{Kind: jsonx.Number, Token: "1"}
	case "boolean":
		return jsonx.NewBool(true)
	case "string":
		return jsonx.NewString(cmp.Or(sampleOf(of.Get("format").Text()), "TEXT"))
	case "object":
		return jsonx.NewObject()
	}
	return nil
}

// sampleOf returns an example of a string format, or "" for unknown formats.
func sampleOf(format string) string {
	switch format {
	case "date":
		return "2026-01-31"
	case "date-time":
		return "2026-01-31T12:00:00Z"
	case "uri", "url":
		return "https://example.com/"
	case "email":
		return "ann@example.com"
	case "uuid":
		return "123e4567-e89b-12d3-a456-426614174000"
	}
	return ""
}

// String returns the type in the notation of [Param].
func (s schemaType) String() string {
	var names []string
	for _, n := range s.names {
		if n == "array" {
			n = s.items.String()
			if strings.Contains(n, "|") {
				n = "(" + n + ")"
			}
			n += "[]"
		}
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	for _, v := range s.enum {
		if n := schema.TypeOf(v); len(s.names) == 0 && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return cmp.Or(strings.Join(names, "|"), "any")
}

// values returns all possible values, if they can be listed.
func (s schemaType) values() []string {
	if s.isList() {
		return s.items.values()
	}
	var out []string
	for _, v := range s.enum {
		out = append(out, plain(v))
	}
	if out == nil && len(s.names) == 1 && s.names[0] == "boolean" {
		return []string{"true", "false"}
	}
	return out
}

// plain returns a value as it is written in an argument.
func plain(v *jsonx.Value) string {
	if v.Is(jsonx.String) {
		return v.Text()
	}
	return string(v.AppendTo(nil))
}
