package args

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
)

// WithoutInvalidExamples removes the examples from params that the tool would refuse:
// those in its definition or schema may be wrong, and the schema may have conditions that
// a made-up value does not meet. If the schema cannot be used, it removes all.
func WithoutInvalidExamples(ctx context.Context, def *registry.Definition, params []Param) []Param {
	validator, usable := registry.NewValidator(def.InputSchema), true
	types := newTypes(def.InputSchema)
	for i := range params {
		if p := &params[i]; len(p.Example) > 0 && !(usable && types.allows(ctx, validator, def, p, &usable)) {
			p.Example = nil
		}
	}
	return params
}

// allows reports whether the example of a param is valid; what is missing beside it does
// not count.
func (t types) allows(ctx context.Context, v *registry.Validator, def *registry.Definition, p *Param, usable *bool) bool {
	doc, err := Parse(p.Example, Options{Schema: def.InputSchema})
	if err != nil {
		return false
	}
	wrong, err := v.Validate(ctx, doc)
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

// sample returns a placeholder of the type that a schema has first: an object with the required
// properties, a list with one element. It need not be valid in every other way. It returns nil if
// there is none.
func (t *sampler) sample(s *jsonx.Value, depth int) *jsonx.Value {
	s, err := t.refs.Resolve(s)
	if t.steps++; err != nil || depth > maxDescribed || t.steps > maxSteps {
		return nil
	}
	if v := s.Get("const"); v != nil {
		return v
	}
	if list := s.Get("enum"); list != nil && len(list.Items) > 0 {
		return list.Items[0]
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
	if places := s.Get("prefixItems"); places != nil && len(places.Items) > 0 {
		of = places.Items[0]
	}
	v := jsonx.NewString("TEXT")
	if of.Is(jsonx.Object) {
		v = t.sample(of, depth+1)
	}
	if v == nil {
		return nil
	}
	list := jsonx.NewArray()
	list.Items = append(list.Items, v)
	return list
}

func (t *sampler) object(s *jsonx.Value, depth int) *jsonx.Value {
	object, needed := jsonx.NewObject(), schema.Required(s)
	if properties := s.Get("properties"); properties != nil {
		for _, m := range properties.Members {
			if needed[m.Name] {
				v := t.sample(m.Value, depth+1)
				if v == nil {
					return nil
				}
				object.Set(m.Name, v)
			}
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
	case "duration":
		return "P1D"
	case "uri", "url", "iri", "uri-reference", "iri-reference", "uri-template":
		return "https://example.com/"
	case "hostname", "idn-hostname":
		return "example.com"
	case "email", "idn-email":
		return "ann@example.com"
	case "ipv4":
		return "192.0.2.1"
	case "ipv6":
		return "2001:db8::1"
	case "uuid":
		return "123e4567-e89b-12d3-a456-426614174000"
	case "json-pointer":
		return "/a"
	case "regex":
		return "a.*"
	}
	return ""
}
