// Package schema walks JSON Schemas of any draft: it knows which keywords
// contain schemas, and resolves references within a schema. Validation is in
// internal/registry.
package schema

import (
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Content is the kind of value that a keyword has.
type Content uint8

// The kinds of values of keywords.
const (
	Other   Content = iota // unknown to this package: a scalar, or a custom keyword
	Data                   // values whose keys have no meaning
	Schemas                // a schema, or a list of them
	Named                  // an object with a schema for each name
)

// Under returns the kind of value of a keyword, in any draft from 4 to 2020-12.
func Under(keyword string) Content {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		return Named
	case "anyOf", "oneOf", "allOf", "not", "if", "then", "else",
		"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains",
		"additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema":
		return Schemas
	case "enum", "const", "default", "examples":
		return Data
	}
	return Other
}

// Walk calls visit with s and all schemas below it that are objects, each before those in it.
func Walk(s *jsonx.Value, visit func(*jsonx.Value)) {
	visit(s)
	for sub := range Within(s) {
		Walk(sub, visit)
	}
}

// Within yields every schema directly within s that is an object, under any
// keyword. It omits booleans, which are schemas too.
func Within(s *jsonx.Value) iter.Seq[*jsonx.Value] {
	return func(yield func(*jsonx.Value) bool) {
		if s == nil {
			return
		}
		ok := func(v *jsonx.Value) bool { return v.Kind != jsonx.Object || yield(v) }
		for i := range s.Members {
			v := s.Members[i].Value
			switch Under(s.Members[i].Name) {
			case Named:
				for j := range v.Members {
					if !ok(v.Members[j].Value) {
						return
					}
				}
			case Schemas:
				if !ok(v) {
					return
				}
				for _, item := range v.Items {
					if !ok(item) {
						return
					}
				}
			}
		}
	}
}

// ErrCycle reports references that refer to each other.
var ErrCycle = errors.New("its references form a cycle")

// maxChain limits chains of references.
const maxChain = 64

// Refs resolves references within one schema. It caches
// lookups, so that a schema with thousands of definitions and references costs
// no more than its size. It is not safe for concurrent use.
type Refs struct {
	root *jsonx.Value
	keys map[*jsonx.Value]map[string]*jsonx.Value // members of large objects

	names  map[string]*jsonx.Value       // schemas by their own names; nil until needed
	merged map[*jsonx.Value]*jsonx.Value // results of Resolve with what several schemas say
	work   int                           // on conditions so far
}

// NewRefs returns the Refs of root.
func NewRefs(root *jsonx.Value) *Refs { return &Refs{root: root} }

// Root returns the whole schema.
func (r *Refs) Root() *jsonx.Value { return r.root }

// Resolve follows the $ref of s, and those of its targets, to a schema without
// one. If a schema has other keywords next to its reference, the result has them too,
// so that it describes the same values as s. Its properties include those that only
// schemas under a condition describe: then, else and dependentSchemas.
func (r *Refs) Resolve(s *jsonx.Value) (*jsonx.Value, error) {
	if found := r.merged[s]; found != nil {
		return found, nil
	}
	start := s
	var beside []*jsonx.Value // schemas on the way that have other keywords
	for range maxChain {
		ref := s.Get("$ref")
		if !ref.Is(jsonx.String) {
			return r.withConditions(start, r.merge(start, append(beside, s))), nil
		}
		target := r.Lookup(ref.Text())
		if target == nil {
			return nil, fmt.Errorf("its reference %.80q does not exist in the schema", ref.Text())
		}
		if slices.ContainsFunc(s.Members, func(m jsonx.Member) bool { return !isAboutRefs(m.Name) }) {
			beside = append(beside, s)
		}
		s = target
	}
	return nil, ErrCycle
}

// Lookup returns the target of a reference; nil if there is none within the
// schema. The reference may be a JSON pointer, also percent-encoded, the name of
// an anchor, or the $id of a schema.
func (r *Refs) Lookup(ref string) *jsonx.Value {
	if !strings.HasPrefix(ref, "#") {
		own, rest, _ := strings.Cut(ref, "#")
		if own == "" || own != strings.TrimSuffix(r.root.Get("$id").Text(), "#") {
			return r.byName(ref)
		}
		ref = "#" + rest
	}
	pointer := ref[1:]
	if plain, err := url.PathUnescape(pointer); err == nil {
		pointer = plain
	}
	if pointer != "" && pointer[0] != '/' {
		return r.byName(ref)
	}
	v := r.root
	for token := range jsonx.Tokens(pointer) {
		v = r.step(v, token)
	}
	return v
}

// byName returns the schema with a name of its own: "#" and an anchor, or an $id.
func (r *Refs) byName(ref string) *jsonx.Value {
	if r.names == nil {
		r.names = map[string]*jsonx.Value{}
		Walk(r.root, func(s *jsonx.Value) {
			for _, keyword := range []string{"$anchor", "$dynamicAnchor", "$id", "id"} { // of any draft
				name := s.Get(keyword).Text()
				if name != "" && strings.HasSuffix(keyword, "nchor") {
					name = "#" + name
				}
				if name != "" && r.names[name] == nil {
					r.names[name] = s
				}
			}
		})
	}
	return r.names[ref]
}

// manyMembers is the number of members above which a map is faster than a linear
// search for each reference.
const manyMembers = 32

func (r *Refs) step(v *jsonx.Value, token string) *jsonx.Value {
	if v.Is(jsonx.Array) {
		return v.Step(token)
	}
	return r.Get(v, token)
}

// Get is v.Get(name), but cheaper if v is large and used repeatedly.
func (r *Refs) Get(v *jsonx.Value, name string) *jsonx.Value {
	if v == nil || len(v.Members) <= manyMembers {
		return v.Get(name)
	}
	keys := r.keys[v]
	if keys == nil {
		keys = v.ByName()
		if r.keys == nil {
			r.keys = map[*jsonx.Value]map[string]*jsonx.Value{}
		}
		r.keys[v] = keys
	}
	return keys[name]
}

// isAboutRefs reports whether a keyword is a reference or only supports references.
func isAboutRefs(keyword string) bool {
	switch keyword {
	case "$ref", "$defs", "definitions", "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$vocabulary", "$comment":
		return true
	}
	return false
}

// merge returns one schema for the values that match all schemas in the list, the last
// of which has no reference. The result is cached for start.
func (r *Refs) merge(start *jsonx.Value, list []*jsonx.Value) *jsonx.Value {
	last := list[len(list)-1]
	if len(list) == 1 || !last.Is(jsonx.Object) {
		return last
	}
	out := jsonx.NewObject()
	for _, s := range list {
		for _, m := range s.Members {
			if s == last || !isAboutRefs(m.Name) {
				Add(out, m)
			}
		}
	}
	if r.merged == nil {
		r.merged = map[*jsonx.Value]*jsonx.Value{}
	}
	r.merged[start] = out
	return out
}

// maxConditionWork limits the work on conditions, which is about the number of properties visited and
// bytes compared, because an untrusted schema can require any amount.
const maxConditionWork = 1 << 20

// withConditions returns s, to which start leads, with the properties that only schemas under a
// condition describe. A property may have any value that one of them allows. The result is
// cached for start.
func (r *Refs) withConditions(start, s *jsonx.Value) *jsonx.Value {
	parts := conditional(s)
	for _, item := range s.Get("allOf").Elements() {
		parts = append(parts, conditional(item)...)
	}
	if len(parts) == 0 {
		return s
	}
	if r.merged == nil {
		r.merged = map[*jsonx.Value]*jsonx.Value{}
	}
	r.merged[start] = s // a condition can refer back
	own := s.Get("properties")
	var names []string
	more := map[string][]*jsonx.Value{}
	for _, part := range parts {
		part, err := r.Resolve(part)
		if r.work++; err != nil || !part.Get("properties").Is(jsonx.Object) {
			continue
		}
		for _, m := range part.Get("properties").Members {
			if r.work++; r.work > maxConditionWork {
				return s
			}
			known := more[m.Name]
			if known == nil && r.Get(own, m.Name) == nil {
				names = append(names, m.Name)
			}
			if !slices.ContainsFunc(known, func(v *jsonx.Value) bool { return r.same(v, m.Value) }) {
				more[m.Name] = append(known, m.Value)
			}
		}
	}
	if len(names) == 0 {
		return s
	}
	properties := jsonx.NewObject(slices.Clone(own.Fields())...)
	r.work += len(properties.Members)
	for _, name := range names {
		value := more[name][0]
		if len(more[name]) > 1 {
			value = jsonx.NewObject(jsonx.NewMember("anyOf", jsonx.NewArray(more[name]...)))
		}
		properties.Members = append(properties.Members, jsonx.NewMember(name, value))
	}
	out := jsonx.NewObject(slices.Clone(s.Members)...)
	out.Set("properties", properties)
	r.merged[start] = out
	return out
}

// same reports whether two schemas have the same text.
func (r *Refs) same(a, b *jsonx.Value) bool {
	if a == b || r.work > maxConditionWork {
		return true
	}
	text, other := a.AppendTo(nil), b.AppendTo(nil)
	r.work += len(text) + len(other)
	return string(text) == string(other)
}

// conditional returns the schemas in s that apply to the same value under a condition.
func conditional(s *jsonx.Value) (out []*jsonx.Value) {
	for _, m := range s.Fields() {
		switch m.Name {
		case "then", "else":
			out = append(out, m.Value)
		case "dependentSchemas":
			for _, d := range m.Value.Members {
				out = append(out, d.Value)
			}
		}
	}
	return out
}

// Add adds a keyword that applies as well to an object schema. If s has a keyword of
// that name and both cannot be combined, that of s takes precedence. Add does not
// modify the existing values of s.
func Add(s *jsonx.Value, m jsonx.Member) {
	old := s.Get(m.Name)
	switch {
	case old == nil:
		s.Members = append(s.Members, m)
	case m.Name == "properties" && old.Is(jsonx.Object):
		s.Set(m.Name, jsonx.NewObject(newMembers(old, m.Value)...))
	case m.Name == "required" && old.Is(jsonx.Array):
		s.Set(m.Name, jsonx.NewArray(AddNames(slices.Clone(old.Items), m.Value.Items)...))
	case m.Name == "allOf" && old.Is(jsonx.Array):
		s.Set(m.Name, jsonx.NewArray(slices.Concat(old.Items, m.Value.Items)...))
	case slices.Contains([]string{"anyOf", "oneOf", "not", "enum", "const"}, m.Name):
		all := slices.Clone(s.Get("allOf").Elements())
		s.Set("allOf", jsonx.NewArray(append(all, jsonx.NewObject(m))...))
	}
}

// newMembers returns the members of first, followed by those of second whose names
// first does not have.
func newMembers(first, second *jsonx.Value) []jsonx.Member {
	have := first.ByName()
	out := slices.Clone(first.Members)
	for _, m := range second.Members {
		if have[m.Name] == nil {
			out = append(out, m)
		}
	}
	return out
}

// AddNames appends to a list of names those of names that it does not contain.
func AddNames(to, names []*jsonx.Value) []*jsonx.Value {
	have := make(map[string]bool, len(to))
	for _, v := range to {
		have[v.Text()] = true
	}
	for _, v := range names {
		if v.Is(jsonx.String) && !have[v.Text()] {
			have[v.Text()] = true
			to = append(to, v)
		}
	}
	return to
}

// OfType returns a schema that only restricts the type.
func OfType(name string) *jsonx.Value {
	return jsonx.NewObject(jsonx.NewMember("type", jsonx.NewString(name)))
}

// TypeOfWord returns the type of JSON Schema that a word under type means: the type itself in any
// case, as in Gemini's declarations (STRING), or what programmers of other languages write for
// it, such as int. It returns "" for words that mean any type; ok is false if the word means none.
func TypeOfWord(word string) (name string, ok bool) {
	switch word = strings.ToLower(word); word {
	case "any", "mixed":
		return "", true
	case "str", "text", "char", "date", "time", "datetime", "date-time", "uuid", "uri", "url", "email":
		return "string", true
	case "int", "int32", "int64", "long", "short":
		return "integer", true
	case "float", "float32", "float64", "double", "decimal":
		return "number", true
	case "bool":
		return "boolean", true
	case "list", "tuple":
		return "array", true
	case "dict", "map":
		return "object", true
	case "none", "nil":
		return "null", true
	}
	return word, slices.Contains(types, word)
}

// HasType reports whether the type keyword of s includes name.
func HasType(s *jsonx.Value, name string) bool {
	typ := s.Get("type")
	if !typ.Is(jsonx.Array) {
		return typ.IsText(name)
	}
	return slices.ContainsFunc(typ.Items, func(t *jsonx.Value) bool { return t.IsText(name) })
}

// IsOfType reports whether the type keyword of s includes the type of a value. Any number may be an integer,
// because 2.0 is one.
func IsOfType(s, v *jsonx.Value) bool {
	return HasType(s, TypeOf(v)) || v.Is(jsonx.Number) && (HasType(s, "number") || HasType(s, "integer"))
}

// TypeOf returns the type of a value as in the type keyword; a number is an
// integer if it is written as one.
func TypeOf(v *jsonx.Value) string {
	switch v.Kind {
	case jsonx.Object:
		return "object"
	case jsonx.Array:
		return "array"
	case jsonx.String:
		return "string"
	case jsonx.Number:
		if strings.ContainsAny(v.Token, ".eE") {
			return "number"
		}
		return "integer"
	case jsonx.Null:
		return "null"
	}
	return "boolean"
}

// HoldsNull reports whether values contains null.
func HoldsNull(values []*jsonx.Value) bool {
	return slices.ContainsFunc(values, func(v *jsonx.Value) bool { return v.Is(jsonx.Null) })
}

// Required returns the names of the properties that s requires.
func Required(s *jsonx.Value) map[string]bool {
	list := s.Get("required").Elements()
	if list == nil {
		return nil
	}
	names := make(map[string]bool, len(list))
	for _, v := range list {
		names[v.Text()] = true
	}
	return names
}

// types are the possible values of the keyword type.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}
