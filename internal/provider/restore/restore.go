// Package restore undoes changes that declarations and models make to params, so that calls can be
// checked against the tool's own schema. It knows no formats: a change is undone wherever the
// tool's own schema rejects the value. Its work is limited even for an untrusted schema.
package restore

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/gemini"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
)

// minSteps and stepsPerByte limit the work on params, because an untrusted schema
// can require any amount.
const (
	minSteps     = 100_000
	stepsPerByte = 8
)

// restorer walks params along their schema.
type restorer struct {
	refs    *schema.Refs
	steps   int // steps left
	changed bool

	patterns map[string]*regexp.Regexp // those of properties; nil for one that cannot be compiled

	byString map[*jsonx.Value]map[string]*jsonx.Value // values of each enum by the strings with which they are declared
}

func restore(rawSchema, params json.RawMessage, walk func(r *restorer, s, v *jsonx.Value)) json.RawMessage {
	if len(rawSchema) > registry.MaxSchemaBytes || len(params) > registry.MaxParamsBytes {
		return params
	}
	s, err := jsonx.Parse(rawSchema, registry.SchemaJSON())
	if err != nil {
		return params
	}
	p := jsonx.Parser{Options: registry.SchemaJSON()}
	v, err := p.Parse(params)
	if err != nil || p.Duplicate {
		return params
	}
	r := &restorer{
		refs:     schema.NewRefs(s),
		steps:    minSteps + stepsPerByte*len(params),
		patterns: map[string]*regexp.Regexp{},
		byString: map[*jsonx.Value]map[string]*jsonx.Value{},
	}
	walk(r, s, v)
	if !r.changed {
		return params
	}
	return v.AppendTo(nil)
}

// spend uses n steps and reports whether enough were left. A step is about one key
// or value.
func (r *restorer) spend(n int) bool {
	r.steps -= n
	return r.steps >= 0
}

// enter returns the schema to which s resolves, or nil if there is none or no steps
// are left. depth is the number of schemas above s that describe the same value; it
// is limited because references may be recursive.
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

// itemSchema returns the schema of the item at an index of a list.
func itemSchema(s *jsonx.Value, i int) *jsonx.Value {
	if places := s.Get("prefixItems"); places != nil && i < len(places.Items) {
		return places.Items[i]
	}
	return s.Get("items")
}

// member returns the schema that s has for a member, or nil.
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

// describing returns a schema that combines what all schemas that apply to a value say about a part
// of it. part finds the part's schema in the keywords of one schema. Nil allows anything.
type describing func(s *jsonx.Value, depth int, part func(s *jsonx.Value) *jsonx.Value) *jsonx.Value

// alternativesOf returns a function for the parts of v. Among alternatives, only those count that
// may describe v, if there are any: null says nothing about the members of an object. This is
// decided once for all parts of v.
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

// possible reports whether an alternative may describe v, a list or an object: it allows the type,
// v has every required member, and members have values that are allowed or can be repaired.
func (r *restorer) possible(s, v *jsonx.Value, depth int) bool {
	if r.kinds(s, nil, depth)&kindOf(v) == 0 {
		return false
	}
	if s = r.enter(s, depth); s == nil || !v.Is(jsonx.Object) {
		return true
	}
	if required := s.Get("required"); required != nil && !r.spend(len(required.Items)) || !r.spend(len(v.Members)) {
		return true
	}
	properties, given := s.Get("properties"), v.ByName()
	for name := range schema.Required(s) {
		if value := given[name]; value == nil ||
			value.Is(jsonx.Null) && !r.takesNull(r.refs.Get(properties, name), depth+1) {
			return false
		}
	}
	for _, m := range v.Members {
		sub, err := r.refs.Resolve(r.refs.Get(properties, m.Name))
		kind := kindOf(m.Value)
		if err != nil || kind == aNull || kind == anArray && len(m.Value.Items) == 0 {
			continue
		}
		if kind != aString && r.kinds(sub, nil, 0)&kind == 0 ||
			kind&(anArray|anObject) == 0 && !r.names(sub, m.Value) {
			return false
		}
	}
	fits := func(branch *jsonx.Value) bool { return r.possible(branch, v, depth+1) }
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list := s.Get(keyword); list != nil && !slices.ContainsFunc(list.Items, fits) {
			return false
		}
	}
	for _, part := range s.Get("allOf").Elements() {
		if !fits(part) {
			return false
		}
	}
	return true
}

// names reports whether a schema lists no values, or lists v, as it is or as gemini declares it.
func (r *restorer) names(s, v *jsonx.Value) bool {
	if c := s.Get("const"); c != nil {
		return gemini.String(c) == gemini.String(v)
	}
	enum := s.Get("enum")
	return !enum.Is(jsonx.Array) || r.declared(enum)[gemini.String(v)] != nil
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

// maxNesting limits the nesting of schemas for one position.
const maxNesting = 20

// takesNull reports whether a schema allows null. If unsure, it returns true,
// and validation decides about the null.
func (r *restorer) takesNull(s *jsonx.Value, depth int) bool {
	return r.kinds(s, nil, depth)&aNull != 0
}

// kinds is a set of types of JSON values.
type kinds uint8

const (
	aNull kinds = 1 << iota
	aBoolean
	anInteger
	aFraction
	aString
	anArray
	anObject
	anything kinds = 1<<iota - 1
)

// kindOf returns the type of a value. A number without a fraction is an integer, however it
// is written.
func kindOf(v *jsonx.Value) kinds {
	switch v.Kind {
	case jsonx.Null:
		return aNull
	case jsonx.True, jsonx.False:
		return aBoolean
	case jsonx.String:
		return aString
	case jsonx.Array:
		return anArray
	case jsonx.Object:
		return anObject
	}
	if _, ok := wholeNumber(v.Token); ok {
		return anInteger
	}
	return aFraction
}

// wholeNumber returns the digits of a number if it has no fraction.
func wholeNumber(token string) (string, bool) {
	if !strings.ContainsAny(token, ".eE") {
		return token, true
	}
	if registry.CheckJSON([]byte(token)) != nil {
		return "", false // its exponent is too large to compute with
	}
	n, ok := new(big.Rat).SetString(token)
	if !ok || !n.IsInt() {
		return "", false
	}
	return n.Num().String(), true
}

// kinds returns the types that a schema may allow. If given is a string, text only counts where a schema that
// lists values lists it.
func (r *restorer) kinds(s, given *jsonx.Value, depth int) kinds {
	if s.Is(jsonx.False) {
		return 0
	}
	if s = r.enter(s, depth); s == nil {
		return anything
	}
	out := anything
	if s.Get("type") != nil {
		out = 0
		for i, word := range []string{"null", "boolean", "integer", "", "string", "array", "object"} {
			if schema.HasType(s, word) {
				out |= 1 << i
			}
		}
		if schema.HasType(s, "number") {
			out |= anInteger | aFraction
		}
	}
	if enum := s.Get("enum"); enum.Is(jsonx.Array) && r.spend(len(enum.Items)) {
		var of kinds
		for _, v := range enum.Items {
			of |= kindIn(v, given)
		}
		out &= of
	}
	if c := s.Get("const"); c != nil {
		out &= kindIn(c, given)
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list := s.Get(keyword)
		if list == nil {
			continue
		}
		var any kinds
		for _, branch := range list.Items {
			of := r.kinds(branch, given, depth+1)
			if any |= of; keyword == "allOf" {
				out &= of
			}
		}
		if keyword != "allOf" {
			out &= any
		}
	}
	return out
}

// kindIn returns the type of a value that a schema lists, or none for a text other than given.
func kindIn(listed, given *jsonx.Value) kinds {
	if listed.Is(jsonx.String) && given != nil && listed.Text() != given.Text() {
		return 0
	}
	return kindOf(listed)
}
