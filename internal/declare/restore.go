package declare

import (
	"encoding/json"
	"slices"

	"github.com/toolreg/toolreg/internal/declare/gemini"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
)

// RestoreEnums undoes in params what format gemini does to enums and const: where
// the tool's own schema lists values that are no strings and params hold one of
// them as the string it was declared as, the original value comes back. A
// string that the schema itself allows stays a string. Everything else keeps
// its bytes but for white space; where nothing is to restore, or where schema
// or params cannot be read or hold a key twice, params come back as they are.
func RestoreEnums(schema, params json.RawMessage) json.RawMessage {
	return restore(schema, params, func(r *restorer, s, v *jsonx.Value) { r.enums(s, v, 0) })
}

// RestoreOptional undoes in params what strict declarations ask for: a null
// for an optional param is dropped, unless the tool's own schema allows null
// there. Like [RestoreEnums] it touches nothing else.
func RestoreOptional(schema, params json.RawMessage) json.RawMessage {
	return restore(schema, params, func(r *restorer, s, v *jsonx.Value) { r.optional(s, v, 0) })
}

// minSteps and stepsPerByte bound the work on params; a schema can ask for any
// amount.
const (
	minSteps     = 100_000
	stepsPerByte = 8
)

// restorer walks params along the schema that describes them.
type restorer struct {
	refs    *schema.Refs
	steps   int // still to be spent
	changed bool

	byString map[*jsonx.Value]map[string]*jsonx.Value // values of an enum by what declares them
}

func restore(rawSchema, params json.RawMessage, walk func(r *restorer, s, v *jsonx.Value)) json.RawMessage {
	if len(rawSchema) > registry.MaxSchemaBytes || len(params) > registry.MaxParamsBytes {
		return params
	}
	s, err := jsonx.Parse(rawSchema, options())
	if err != nil {
		return params
	}
	p := jsonx.Parser{Options: options()}
	v, err := p.Parse(params)
	if err != nil || p.Duplicate {
		return params
	}
	r := &restorer{refs: schema.NewRefs(s), steps: minSteps + stepsPerByte*len(params)}
	walk(r, s, v)
	if !r.changed {
		return params
	}
	return v.AppendTo(nil)
}

// spend counts n steps, about the keys and values looked at, and reports
// whether they may be made.
func (r *restorer) spend(n int) bool {
	r.steps -= n
	return r.steps >= 0
}

// enter returns the schema that s stands for, nil where there is none or no
// further step may be made. Depth counts the schemas above s that describe the
// same value: references may lead back to them.
func (r *restorer) enter(s *jsonx.Value, depth int) *jsonx.Value {
	if !s.Is(jsonx.Object) || depth > maxNesting || !r.spend(1+len(s.Members)) {
		return nil
	}
	s, err := r.refs.Resolve(s)
	if err != nil {
		return nil
	}
	return s
}

// enums follows the path of gemini.Sanitize and of gemini.Fitter.
func (r *restorer) enums(s, v *jsonx.Value, depth int) {
	if v.Kind < jsonx.String { // no text, and nothing within
		return
	}
	if s = r.enter(s, depth); s == nil {
		return
	}
	r.enum(s, v)
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		list := s.Get(keyword)
		if list == nil || v.Is(jsonx.String) && keyword != "allOf" && r.someTakes(list.Items, v, depth) {
			continue
		}
		for _, branch := range list.Items {
			r.enums(branch, v, depth+1)
		}
	}
	for i, item := range v.Items {
		r.enums(itemSchema(s, i), item, 0)
	}
	r.eachParam(s, v, func(_ string, sub, value *jsonx.Value) { r.enums(sub, value, 0) })
}

// itemSchema returns the schema of the item at a place of a list.
func itemSchema(s *jsonx.Value, i int) *jsonx.Value {
	items := s.Get("items")
	places, rest := s.Get("prefixItems"), items
	if items.Is(jsonx.Array) { // as before draft 2020-12
		places, rest = items, s.Get("additionalItems")
	}
	if places != nil && i < len(places.Items) {
		return places.Items[i]
	}
	return rest
}

// enum restores a value of an enum, or of the enum of one that const is.
func (r *restorer) enum(s, v *jsonx.Value) {
	if !v.Is(jsonx.String) {
		return
	}
	if enum := s.Get("enum"); enum.Is(jsonx.Array) {
		if original := r.declared(enum)[v.Text()]; original != nil && !original.Is(jsonx.String) {
			*v, r.changed = *original, true
		}
	} else if c := s.Get("const"); c != nil && !c.Is(jsonx.String) && !c.Is(jsonx.Null) && gemini.String(c) == v.Text() {
		*v, r.changed = *c, true
	}
}

// declared maps the strings that an enum is declared by to its values, once for
// each enum. A string is declared by itself, whatever else looks like it.
func (r *restorer) declared(enum *jsonx.Value) map[string]*jsonx.Value {
	if known, ok := r.byString[enum]; ok {
		return known
	}
	values := make(map[string]*jsonx.Value, len(enum.Items))
	for _, e := range enum.Items {
		if e.Is(jsonx.Null) {
			continue
		}
		s := gemini.String(e)
		if old := values[s]; old == nil || !old.Is(jsonx.String) && e.Is(jsonx.String) {
			values[s] = e
		}
	}
	if r.byString == nil {
		r.byString = map[*jsonx.Value]map[string]*jsonx.Value{}
	}
	r.byString[enum] = values
	return values
}

// someTakes reports whether one of the branches plainly allows the string v.
func (r *restorer) someTakes(branches []*jsonx.Value, v *jsonx.Value, depth int) bool {
	return slices.ContainsFunc(branches, func(b *jsonx.Value) bool {
		if depth > maxNesting || !r.spend(1) {
			return true
		}
		if target, err := r.refs.Resolve(b); err == nil {
			b = target
		}
		enum, constant := b.Get("enum"), b.Get("const")
		switch {
		case enum != nil:
			return r.declared(enum)[v.Text()].Is(jsonx.String)
		case constant != nil:
			return constant.IsText(v.Text())
		}
		return schema.HasType(b, "string") || b.Is(jsonx.True)
	})
}

// eachParam calls f with every member of an object that the schema describes.
func (r *restorer) eachParam(s, v *jsonx.Value, f func(name string, sub, value *jsonx.Value)) {
	properties := s.Get("properties")
	if !properties.Is(jsonx.Object) || !r.spend(len(v.Members)) {
		return
	}
	for i := range v.Members {
		m := &v.Members[i]
		if sub := r.refs.Get(properties, m.Name); sub != nil {
			f(m.Name, sub, m.Value)
		}
	}
}

// optional drops nulls from objects, wherever the schema tells what is there.
func (r *restorer) optional(s, v *jsonx.Value, depth int) {
	if !v.Is(jsonx.Object) && !v.Is(jsonx.Array) {
		return
	}
	if s = r.enter(s, depth); s == nil {
		return
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		if list := s.Get(keyword); list != nil {
			for _, branch := range list.Items {
				r.optional(branch, v, depth+1)
			}
		}
	}
	for _, item := range v.Items {
		r.optional(s.Get("items"), item, 0)
	}
	required := schema.Required(s)
	drop := map[string]bool{}
	r.eachParam(s, v, func(name string, sub, value *jsonx.Value) {
		if !value.Is(jsonx.Null) {
			r.optional(sub, value, 0)
		} else if !required[name] && !r.takesNull(sub, 0) {
			drop[name] = true
		}
	})
	if len(drop) > 0 {
		v.Members = slices.DeleteFunc(v.Members, func(m jsonx.Member) bool { return drop[m.Name] })
		r.changed = true
	}
}

// maxNesting bounds how deep schemas within one place are looked through.
const maxNesting = 20

// takesNull reports whether a schema allows null. In doubt it says yes, and
// the null stays for validation to judge.
func (r *restorer) takesNull(s *jsonx.Value, depth int) bool {
	if !s.Is(jsonx.Object) {
		return !s.Is(jsonx.False)
	}
	if s = r.enter(s, depth); s == nil {
		return true
	}
	if s.Get("type") != nil && !schema.HasType(s, "null") {
		return false
	}
	if enum := s.Get("enum"); enum != nil && r.spend(len(enum.Items)) && !schema.HoldsNull(enum.Items) {
		return false
	}
	if c := s.Get("const"); c != nil && !c.Is(jsonx.Null) {
		return false
	}
	takes := func(branch *jsonx.Value) bool { return r.takesNull(branch, depth+1) }
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list := s.Get(keyword); list != nil && !slices.ContainsFunc(list.Items, takes) {
			return false
		}
	}
	return true
}
