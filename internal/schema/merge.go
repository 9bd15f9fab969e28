package schema

import (
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
)

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
		all := s.Get("allOf")
		if all == nil {
			all = jsonx.NewArray()
		}
		s.Set("allOf", jsonx.NewArray(append(slices.Clone(all.Items), jsonx.NewObject(m))...))
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
