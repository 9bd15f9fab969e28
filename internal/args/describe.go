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
	Element     bool   // whether it belongs to the elements of a list, as in "entities[].name", and so is no argument
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
	lists    int // lists around the current object
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
				if list, err := d.types.refs.Resolve(m.Value); err == nil && list.Get("items").Is(jsonx.Object) {
					at[len(at)-1] += "[]"
					d.lists++
					d.object(list.Get("items"), at, true, visited{})
					d.lists--
				}
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
	p := Param{Name: strings.Join(path, "."), Type: typ.String(), Required: required, Values: typ.values(), Element: d.lists > 0}
	resolved, err := d.types.refs.Resolve(s)
	if err != nil {
		resolved = nil
	}
	p.Description = cmp.Or(s.Get("description").Text(), resolved.Get("description").Text())
	if v := resolved.Get("default"); v != nil {
		p.Default = plain(v)
	}
	p.Allowed = d.allowed(resolved, typ)
	if p.Element {
		return p
	}
	if v := d.example(resolved, path); v != nil {
		p.Example = d.types.argument(p.Name, v)
	}
	return p
}

// example returns a possible value of the param: one from the tool's examples or
// the schema, or else a small value that it allows. It returns nil if there is none.
func (d *describer) example(s *jsonx.Value, path []string) *jsonx.Value {
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
	return (&sampler{types: d.types}).sample(s, 0)
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
