package overrides

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// settling evaluates the conditions of a schema on a param that every call sends
// with the same value, or never sends. The result no longer names the param. If it
// is not certain that the result means the same, the tool is not reshaped.
type settling struct {
	*shaping
	name  string
	value json.RawMessage // nil: never sent
}

// settle settles the conditions on a param that an override fixes, before the
// param is removed. It reports whether that was possible.
func (s *shaping) settle(p *param) bool {
	keyword := s.schema.conditional(p.of)
	if keyword == "" {
		return true
	}
	st := &settling{s, p.of, p.value()}
	for _, part := range s.schema.parts {
		possible, sure := st.conditions(part, maxInlined)
		closes := part.Get("additionalProperties") != nil && part.Get("properties").Get(p.of) == nil
		if st.value != nil && (closes || slices.ContainsFunc(part.Members, isAboutOthers)) {
			sure = false
		}
		switch {
		case !sure:
			s.failConditional(p, keyword)
			return false
		case !possible:
			s.fail(pointer(p.of, ""), fmt.Sprintf("no call with this param fixed can satisfy %q of the input schema", keyword), "")
			return false
		}
	}
	s.schema.collectAll() // alternatives may have become parts
	return true
}

// never is a schema that accepts nothing; draft 4 has no false.
func never() *jsonx.Value { return jsonx.NewObject(jsonx.NewMember("not", jsonx.NewObject())) }

func isAlways(s *jsonx.Value) bool {
	return s.Is(jsonx.True) || s.Is(jsonx.Object) && len(s.Members) == 0
}

// within settles a schema for the same object, which it changes. The result is nil
// if no call fits.
func (st *settling) within(s *jsonx.Value, depth int) (out *jsonx.Value, sure bool) {
	switch {
	case depth <= 0:
		return nil, false
	case !st.schema.isNamedIn(s, st.name, depth):
		if st.value == nil || !st.seesAll(s, depth) {
			return s, true
		}
		return nil, isClosed(s)
	case s.Get("$ref") != nil:
		if len(s.Members) > 1 {
			return nil, false
		}
		return st.within(st.schema.references().Lookup(s.Get("$ref").Text()).Clone(), depth-1)
	case st.value != nil && slices.ContainsFunc(s.Members, isAboutOthers):
		return nil, false
	}
	possible, sure := st.properties(s)
	if possible && sure {
		possible, sure = st.conditions(s, depth)
	}
	if !possible || !sure {
		return nil, sure
	}
	return s, true
}

// properties settles the keywords properties, required and additionalProperties.
func (st *settling) properties(s *jsonx.Value) (possible, sure bool) {
	properties := s.Get("properties")
	switch param := properties.Get(st.name); {
	case st.value == nil && schema.Required(s)[st.name]:
		return false, true
	case st.value != nil && param == nil && s.Get("additionalProperties") != nil:
		return false, isClosed(s)
	case st.value != nil && param != nil:
		if ok, err := st.accepts(param, st.name, st.value); !ok {
			return false, err == nil
		}
	}
	if properties.Is(jsonx.Object) {
		if properties.Remove(st.name); len(properties.Members) == 0 {
			s.Remove("properties")
		}
	}
	dismiss(s, st.name)
	return true, true
}

// conditions settles the keywords of s that apply schemas to the same object.
func (st *settling) conditions(s *jsonx.Value, depth int) (possible, sure bool) {
	for _, m := range slices.Clone(s.Members) {
		possible, sure = true, true
		switch m.Name {
		case "allOf", "anyOf", "oneOf":
			possible, sure = st.list(s, m, depth)
		case "not":
			var inner *jsonx.Value
			if inner, sure = st.within(m.Value, depth-1); inner == nil {
				s.Remove(m.Name)
			} else {
				s.Set(m.Name, inner)
				possible = !isAlways(inner)
			}
		case "if", "then", "else":
			sure = st.member(s, m, depth)
		case "dependentSchemas", "dependentRequired", "dependencies":
			sure = st.dependencies(m.Value, depth)
		}
		if !possible || !sure {
			return false, sure
		}
	}
	return true, true
}

// list settles a list of alternatives, or of schemas that apply together.
func (st *settling) list(s *jsonx.Value, m jsonx.Member, depth int) (possible, sure bool) {
	left := m.Value.Items[:0]
	always := false
	for _, item := range slices.Clone(m.Value.Items) {
		out, sure := st.within(item, depth-1)
		if !sure {
			return false, false
		}
		if out == nil && m.Name == "allOf" {
			return false, true
		}
		if out != nil {
			left = append(left, out)
			always = always || isAlways(out)
		}
	}
	switch m.Value.Items = left; {
	case m.Name == "allOf":
	case always && m.Name == "anyOf":
		s.Remove(m.Name)
	case len(left) == 1: // not an alternative any more
		s.Remove(m.Name)
		appendAllOf(s, left[0])
	}
	return len(left) > 0, true
}

func (st *settling) member(of *jsonx.Value, m jsonx.Member, depth int) (sure bool) {
	out, sure := st.within(m.Value, depth-1)
	if out == nil {
		out = never()
	}
	of.Set(m.Name, out)
	return sure
}

// dependencies settles what depends on the presence of a param. What depends on
// the param itself is certain only if it is never sent: the keyword has no effect
// in some drafts.
func (st *settling) dependencies(all *jsonx.Value, depth int) (sure bool) {
	for _, m := range slices.Clone(all.Members) {
		names := m.Value.Is(jsonx.Array) && slices.ContainsFunc(m.Value.Items, func(v *jsonx.Value) bool { return v.IsText(st.name) })
		switch {
		case m.Name == st.name && st.value == nil:
			all.Remove(m.Name)
		case m.Name == st.name || names && st.value == nil:
			return false
		case names:
			m.Value.Items = slices.DeleteFunc(m.Value.Items, func(v *jsonx.Value) bool { return v.IsText(st.name) })
		case !m.Value.Is(jsonx.Array):
			if !st.member(all, m, depth) {
				return false
			}
		}
	}
	return true
}

// isClosed reports whether a schema that does not name a param certainly refuses
// it.
func isClosed(s *jsonx.Value) bool {
	return s.Get("additionalProperties").Is(jsonx.False) && s.Get("patternProperties") == nil && s.Get("$ref") == nil
}

// isAboutOthers reports whether a keyword is about params that it does not name.
func isAboutOthers(m jsonx.Member) bool {
	switch m.Name {
	case "unevaluatedProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties", "const", "enum", "$dynamicRef", "$recursiveRef":
		return true
	}
	return false
}

// seesAll reports whether a schema for the same object may be about params that it
// does not name.
func (st *settling) seesAll(s *jsonx.Value, depth int) bool {
	if depth <= 0 {
		return true
	}
	sees := func(v *jsonx.Value) bool { return st.seesAll(v, depth-1) }
	return slices.ContainsFunc(s.Members, func(m jsonx.Member) bool {
		switch m.Name {
		case "additionalProperties":
			return !m.Value.Is(jsonx.True)
		case "allOf", "anyOf", "oneOf":
			return slices.ContainsFunc(m.Value.Items, sees)
		case "not", "if", "then", "else":
			return sees(m.Value)
		case "dependentSchemas", "dependencies":
			return slices.ContainsFunc(m.Value.Members, func(d jsonx.Member) bool { return sees(d.Value) })
		case "$ref":
			return sees(st.schema.references().Lookup(m.Value.Text()))
		}
		return isAboutOthers(m)
	})
}
