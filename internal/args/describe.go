package args

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
	"github.com/toolreg/toolreg/internal/text"
)

// Param describes one param of a tool according to its input schema. The text may
// be untrusted.
type Param struct {
	Name string // as in arguments; a nested param is "page.size"
	// Element says that the param belongs to the elements of a list, as in "entities[].name",
	// and so is not an argument.
	Element     bool
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
	for _, m := range s.Get("properties").Fields() {
		at := append(slices.Clone(path), m.Name)
		name := strings.Join(at, ".")
		if len(d.params) >= maxParams ||
			slices.ContainsFunc(d.params, func(p Param) bool { return p.Name == name }) {
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
	always := len(s.Get("allOf").Elements()) // with which the alternatives begin
	for i, alternative := range alternatives(s) {
		d.object(alternative, path, required && i < always, seen)
	}
}

func (d *describer) param(s *jsonx.Value, path []string, required bool) Param {
	typ := d.types.typeOf(s, 0)
	p := Param{
		Name:     strings.Join(path, "."),
		Type:     typ.String(),
		Required: required,
		Values:   typ.values(),
		Element:  d.lists > 0,
	}
	resolved, err := d.types.refs.Resolve(s)
	if err != nil {
		resolved = nil
	}
	p.Description = cmp.Or(s.Get("description").Text(), resolved.Get("description").Text())
	if v := resolved.Get("default"); v != nil {
		p.Default = v.Plain()
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

// example returns a possible value of the param: one from the tool's examples or the schema, or
// else a simple value that it allows. It returns nil if there is none.
func (d *describer) example(s *jsonx.Value, path []string) *jsonx.Value {
	for _, e := range d.examples {
		for _, key := range path {
			e = e.Get(key)
		}
		if e != nil {
			return e
		}
	}
	if list := s.Get("examples").Elements(); len(list) > 0 {
		return list[0]
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
		names = text.AppendNew(names, n)
	}
	for _, v := range s.enum {
		if n := schema.TypeOf(v); len(s.names) == 0 && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return cmp.Or(strings.Join(names, "|"), "any")
}

func (s schemaType) values() []string {
	if s.isList("", false) {
		return s.items.values()
	}
	var out []string
	for _, v := range s.enum {
		out = append(out, v.Plain())
	}
	if out == nil && len(s.names) == 1 && s.names[0] == "boolean" {
		return []string{"true", "false"}
	}
	return out
}

// allowed describes the values that a schema allows, beyond their type. It returns
// "" if all are allowed.
func (d *describer) allowed(s *jsonx.Value, typ schemaType) string {
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, text)
		}
	}
	if values := typ.values(); len(typ.enum) > 0 || typ.isList("", false) && len(typ.items.enum) > 0 {
		add(strings.Join(values, ", "))
	}
	add(between(number(s, "minimum"), number(s, "maximum"), ""))
	add(prefixed("more than ", number(s, "exclusiveMinimum")))
	add(prefixed("less than ", number(s, "exclusiveMaximum")))
	add(prefixed("a multiple of ", number(s, "multipleOf")))
	if least := number(s, "minLength"); least == "1" && number(s, "maxLength") == "" {
		add("not empty")
	} else {
		add(between(least, number(s, "maxLength"), " characters"))
	}
	add(between(number(s, "minItems"), number(s, "maxItems"), " items"))
	if s.Get("uniqueItems").Is(jsonx.True) {
		add("unique items")
	}
	add(s.Get("format").Text())
	add(prefixed("matches ", s.Get("pattern").Text()))
	return strings.Join(parts, "; ")
}

func number(s *jsonx.Value, keyword string) string {
	if v := s.Get(keyword); v.Is(jsonx.Number) {
		return v.Token
	}
	return ""
}

func between(least, most, unit string) string {
	switch {
	case least != "" && most != "":
		return least + " to " + most + unit
	case least != "":
		return "at least " + least + unit
	case most != "":
		return "at most " + most + unit
	}
	return ""
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// WithoutInvalidExamples removes the examples from params that the tool would refuse:
// those in its definition or schema may be wrong, and the schema may have conditions that
// a made-up value does not meet. If the schema cannot be used, it removes all, and if the checks
// take long, the rest.
func WithoutInvalidExamples(ctx context.Context, def *registry.Definition, params []Param) []Param {
	ctx, cancel := context.WithTimeout(ctx, maxChecking)
	defer cancel()
	validator, usable := registry.NewValidator(def.InputSchema), true
	types := newTypes(def.InputSchema)
	for i := range params {
		if p := &params[i]; len(p.Example) > 0 && !(usable && types.allows(ctx, validator, p, &usable)) {
			p.Example = nil
		}
	}
	return params
}

// maxChecking limits the time for the examples of one tool, because an untrusted schema can make each take long.
const maxChecking = 3 * time.Second

// allows reports whether the example of a param is valid, ignoring missing params.
func (t types) allows(ctx context.Context, v *registry.Validator, p *Param, usable *bool) bool {
	root := jsonx.NewObject()
	if t.parse(root, p.Example, Options{}) != nil {
		return false
	}
	wrong, err := v.Validate(ctx, root.AppendTo(nil))
	if *usable = err == nil; err != nil {
		return false
	}
	pointer := ""
	for _, key := range t.path(p.Name) {
		pointer += "/" + jsonx.EscapeToken(key)
	}
	return !slices.ContainsFunc(wrong, func(w registry.Violation) bool {
		return w.Pointer == pointer || strings.HasPrefix(w.Pointer, pointer+"/")
	})
}

// sampler makes up values of one schema.
type sampler struct {
	types
	steps int // schemas seen; untrusted ones may contain themselves many times
}

// maxSteps is the maximum of steps for one value.
const maxSteps = 1000

// sample returns a placeholder of the first type that a schema allows: an object with the required
// properties, a list with one element. It may violate other rules of the schema. It returns nil if
// there is none.
func (t *sampler) sample(s *jsonx.Value, depth int) *jsonx.Value {
	s, err := t.refs.Resolve(s)
	if t.steps++; err != nil || depth > maxDescribed || t.steps > maxSteps {
		return nil
	}
	if v := s.Get("const"); v != nil {
		return v
	}
	if list := s.Get("enum").Elements(); len(list) > 0 {
		return list[0]
	}
	names := typeNames(s.Get("type"))
	switch {
	case len(names) > 0:
	case s.Get("properties") != nil:
		names = []string{"object"}
	case s.Get("prefixItems") != nil || s.Get("items") != nil:
		names = []string{"array"}
	default:
		for _, alternative := range alternatives(s) {
			if v := t.sample(alternative, depth+1); v != nil && !v.Is(jsonx.Null) {
				return v
			}
		}
		names = []string{"string"}
	}
	switch names[0] {
	case "integer", "number":
		return &jsonx.Value{Kind: jsonx.Number, Token: cmp.Or(number(s, "minimum"), number(s, "maximum"), "1")}
	case "boolean":
		return jsonx.NewBool(true)
	case "string":
		return jsonx.NewString(cmp.Or(sampleOf(s.Get("format").Text()), "TEXT"))
	case "array":
		return t.list(s, depth)
	case "object":
		return t.object(s, depth)
	}
	return nil
}

func (t *sampler) list(s *jsonx.Value, depth int) *jsonx.Value {
	of := s.Get("items")
	if places := s.Get("prefixItems").Elements(); len(places) > 0 {
		of = places[0]
	}
	v := jsonx.NewString("TEXT")
	if of.Is(jsonx.Object) {
		v = t.sample(of, depth+1)
	}
	if v == nil {
		return nil
	}
	return jsonx.NewArray(v)
}

func (t *sampler) object(s *jsonx.Value, depth int) *jsonx.Value {
	object, needed := jsonx.NewObject(), schema.Required(s)
	for _, m := range s.Get("properties").Fields() {
		if needed[m.Name] {
			v := t.sample(m.Value, depth+1)
			if v == nil {
				return nil
			}
			object.Set(m.Name, v)
		}
	}
	return object
}

// sampleOf returns an example of a string format, or "" for unknown formats.
func sampleOf(format string) string {
	switch format {
	case "date":
		return "2026-01-31"
	case "date-time":
		return "2026-01-31T12:00:00Z"
	case "time":
		return "12:00:00Z"
	case "uri", "url", "iri", "uri-reference", "iri-reference", "uri-template":
		return "https://example.com/"
	case "hostname", "idn-hostname":
		return "example.com"
	case "email", "idn-email":
		return "ann@example.com"
	case "ipv4":
		return "192.0.2.1"
	case "uuid":
		return "123e4567-e89b-12d3-a456-426614174000"
	}
	return ""
}
