package restore

import (
	"bytes"
	"encoding/json"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/gemini"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
)

// Values repairs values that a provider's format, models and their clients change: a string
// becomes the value that the format gemini declares as it, or the JSON in it, if the schema allows no
// string there, or only others, and allows that value's type; a whole number such as 5000.0 becomes 5000
// if the schema allows only integers; an empty list, as PHP writes an empty object, becomes one if the
// schema allows objects and no lists. Everything else keeps its bytes except for white space; if there is
// nothing to restore, or schema or params cannot be parsed or have duplicate keys, params are unchanged.
func Values(inputSchema, params json.RawMessage) json.RawMessage {
	if !mayNeedRepair(params) {
		return params
	}
	return restore(inputSchema, params, (*restorer).values)
}

// mayNeedRepair reports whether params have a number with a point or an exponent, an empty list, or
// a string that may be JSON. Most have none of these, and need not be parsed.
func mayNeedRepair(params []byte) bool {
	for i, c := range params {
		switch {
		case i == 0:
		case (c == '.' || c|0x20 == 'e') && params[i-1]-'0' <= 9, c == ']' && params[i-1] == '[':
			return true
		case params[i-1] == '"':
			switch {
			case c == '{' || c == '[' || c == '-' || c-'0' <= 9, c == ' ', c == '\\':
				return true
			case bytes.HasPrefix(params[i:], []byte(`true"`)),
				bytes.HasPrefix(params[i:], []byte(`false"`)), bytes.HasPrefix(params[i:], []byte(`null"`)):
				return true
			}
		}
	}
	return false
}

// values repairs v and everything in it.
func (r *restorer) values(s, v *jsonx.Value) {
	if !r.spend(1) {
		return
	}
	switch v.Kind {
	case jsonx.String:
		allowed := r.kinds(s, v, 0)
		if allowed&aString != 0 {
			break
		}
		if original := r.listed(s, v, 0); original != nil {
			*v, r.changed = *original, true
		} else if registry.CheckJSON([]byte(v.Text())) == nil {
			if parsed, err := jsonx.Parse([]byte(v.Text()), registry.SchemaJSON()); err == nil &&
				kindOf(parsed)&allowed != 0 {
				*v, r.changed = *parsed, true
				r.values(s, v)
				return
			}
		}
	case jsonx.Number:
		if digits, ok := wholeNumber(v.Token); ok && digits != v.Token &&
			r.kinds(s, nil, 0)&(anInteger|aFraction) == anInteger {
			v.Token, r.changed = digits, true
		}
	case jsonx.Array:
		if len(v.Items) == 0 && r.kinds(s, nil, 0)&(anObject|anArray) == anObject {
			*v, r.changed = *jsonx.NewObject(), true
		}
	}
	r.parts(s, v, r.values)
}

// parts calls f with each item or member of v and the schema for it.
func (r *restorer) parts(s, v *jsonx.Value, f func(s, v *jsonx.Value)) {
	within := r.alternativesOf(v)
	for i, item := range v.Items {
		f(within(s, 0, func(s *jsonx.Value) *jsonx.Value { return itemSchema(s, i) }), item)
	}
	for _, m := range v.Members {
		f(within(s, 0, func(s *jsonx.Value) *jsonx.Value { return r.member(s, m.Name) }), m.Value)
	}
}

// member returns the schema that the keywords of s have for a member, or nil.
func (r *restorer) member(s *jsonx.Value, name string) *jsonx.Value {
	if sub := r.refs.Get(s.Get("properties"), name); sub != nil {
		return sub
	}
	patterns := s.Get("patternProperties")
	if !patterns.Is(jsonx.Object) {
		return s.Get("additionalProperties")
	}
	var all []*jsonx.Value
	for _, m := range patterns.Members {
		re, known := r.patterns[m.Name]
		if !known {
			re = schema.Pattern(m.Name)
			r.patterns[m.Name] = re
		}
		if re == nil || !r.spend(len(m.Name)) { // whether it applies is not known
			return nil
		}
		if re.MatchString(name) {
			all = append(all, m.Value)
		}
	}
	switch len(all) {
	case 0:
		return s.Get("additionalProperties")
	case 1:
		return all[0]
	}
	return jsonx.NewObject(jsonx.NewMember("allOf", jsonx.NewArray(all...)))
}

// describing returns a schema for a part of the values of s, which part finds in the keywords of
// one schema: it combines what all schemas that apply to the value say. nil allows anything.
type describing func(s *jsonx.Value, depth int, part func(s *jsonx.Value) *jsonx.Value) *jsonx.Value

// alternativesOf returns a function for the parts of v. Of several alternatives only those count
// that may describe v, if there are any: null says nothing about the members of an object. This
// is decided once for all parts of v.
func (r *restorer) alternativesOf(v *jsonx.Value) describing {
	decided := map[*jsonx.Value]bool{}
	impossible := func(branch *jsonx.Value, depth int) bool {
		possible, known := decided[branch]
		if !known {
			possible = r.possible(branch, v, depth)
			decided[branch] = possible
		}
		return !possible
	}
	var within describing
	within = func(s *jsonx.Value, depth int, part func(s *jsonx.Value) *jsonx.Value) *jsonx.Value {
		if s = r.enter(s, depth); s == nil {
			return nil
		}
		var all []*jsonx.Value
		if sub := part(s); sub != nil {
			all = append(all, sub)
		}
		for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
			list := s.Get(keyword)
			if list == nil {
				continue
			}
			var parts, others []*jsonx.Value
			for _, branch := range list.Items {
				sub := within(branch, depth+1, part)
				if sub == nil {
					sub = jsonx.NewBool(true)
				}
				if keyword != "allOf" && impossible(branch, depth) {
					others = append(others, sub)
				} else {
					parts = append(parts, sub)
				}
			}
			if keyword == "allOf" {
				all = append(all, parts...)
				continue
			}
			if parts == nil {
				parts = others
			}
			all = append(all, jsonx.NewObject(jsonx.NewMember("anyOf", jsonx.NewArray(parts...))))
		}
		switch len(all) {
		case 0:
			return nil
		case 1:
			return all[0]
		}
		return jsonx.NewObject(jsonx.NewMember("allOf", jsonx.NewArray(all...)))
	}
	return within
}

// listed returns the value that a schema lists and gemini declares as the string v, or nil.
func (r *restorer) listed(s, v *jsonx.Value, depth int) *jsonx.Value {
	if s = r.enter(s, depth); s == nil {
		return nil
	}
	if enum := s.Get("enum"); enum.Is(jsonx.Array) && r.declared(enum)[v.Text()] != nil {
		return r.declared(enum)[v.Text()]
	}
	if c := s.Get("const"); c != nil && gemini.String(c) == v.Text() {
		return c
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		for _, branch := range s.Get(keyword).Elements() {
			if original := r.listed(branch, v, depth+1); original != nil {
				return original
			}
		}
	}
	return nil
}

// declared maps the strings with which an enum is declared to its values. The map is created once for each
// enum.
func (r *restorer) declared(enum *jsonx.Value) map[string]*jsonx.Value {
	if known, ok := r.byString[enum]; ok {
		return known
	}
	values := make(map[string]*jsonx.Value, len(enum.Items))
	for _, e := range enum.Items {
		values[gemini.String(e)] = e
	}
	r.byString[enum] = values
	return values
}
