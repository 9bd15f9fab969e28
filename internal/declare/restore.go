package declare

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/declare/gemini"
	"github.com/toolreg/toolreg/internal/declare/tree"
	"github.com/toolreg/toolreg/internal/registry"
)

// RestoreEnums undoes in params what format gemini does to enums and const: where
// the tool's own schema lists values that are no strings and params hold one of
// them as the string it was declared as, the original value comes back. A
// string that the schema itself allows stays a string. Everything else keeps
// its bytes but for white space; where nothing is to restore, or where schema
// or params cannot be read or hold a key twice, params come back as they are.
func RestoreEnums(schema, params json.RawMessage) json.RawMessage {
	return restore(schema, params, func(r *restorer, s, v *tree.Node) { r.enums(s, v, 0) })
}

// RestoreOptional undoes in params what strict declarations ask for: a null
// for an optional param is dropped, unless the tool's own schema allows null
// there. Like [RestoreEnums] it touches nothing else.
func RestoreOptional(schema, params json.RawMessage) json.RawMessage {
	return restore(schema, params, func(r *restorer, s, v *tree.Node) { r.optional(s, v, 0) })
}

// minSteps and stepsPerByte bound the work on params; a schema can ask for any
// amount.
const (
	minSteps     = 100_000
	stepsPerByte = 8
)

// restorer walks params along the schema that describes them.
type restorer struct {
	refs    *tree.Resolver
	steps   int // still to be spent
	changed bool

	byString map[*tree.Node]map[string]*tree.Node // values of an enum by what declares them
}

func restore(schema, params json.RawMessage, walk func(r *restorer, s, v *tree.Node)) json.RawMessage {
	if len(schema) > registry.MaxSchemaBytes || len(params) > registry.MaxParamsBytes {
		return params
	}
	var forSchema, forParams tree.Parser
	s, err := forSchema.Parse(schema, registry.MaxDepth)
	if err != nil {
		return params
	}
	v, err := forParams.Parse(params, registry.MaxDepth)
	if err != nil || forParams.Duplicate {
		return params
	}
	r := &restorer{refs: tree.NewResolver(s), steps: minSteps + stepsPerByte*len(params)}
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

// enums follows the path of sanitize and of geminiFitter. Depth counts the
// schemas above s that describe v itself: references may lead back to them.
func (r *restorer) enums(s, v *tree.Node, depth int) {
	if s == nil || s.Kind != tree.Object || depth > maxNesting || !r.spend(1+len(s.Members)) {
		return
	}
	if v.Kind != tree.String && v.Kind != tree.Array && v.Kind != tree.Object {
		return
	}
	s, err := r.refs.Resolve(s)
	if err != nil {
		return
	}
	r.enum(s, v)
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		list := s.Get(keyword)
		if list == nil || v.Kind == tree.String && keyword != "allOf" && r.someTakes(list.Items, v, depth) {
			continue
		}
		for _, branch := range list.Items {
			r.enums(branch, v, depth+1)
		}
	}
	switch v.Kind {
	case tree.Array:
		for i, item := range v.Items {
			r.enums(itemSchema(s, i), item, 0)
		}
	case tree.Object:
		r.eachParam(s, v, func(_ int, sub, value *tree.Node) { r.enums(sub, value, 0) })
	}
}

// itemSchema returns the schema of the item at a place of a list.
func itemSchema(s *tree.Node, i int) *tree.Node {
	items := s.Get("items")
	places, rest := s.Get("prefixItems"), items
	if items != nil && items.Kind == tree.Array { // as before draft 2020-12
		places, rest = items, s.Get("additionalItems")
	}
	if places != nil && i < len(places.Items) {
		return places.Items[i]
	}
	return rest
}

// enum restores a value of an enum, or of the enum of one that const is.
func (r *restorer) enum(s, v *tree.Node) {
	if v.Kind != tree.String {
		return
	}
	if enum := s.Get("enum"); enum != nil && enum.Kind == tree.Array {
		if original := r.declared(enum)[v.Text()]; original != nil && original.Kind != tree.String {
			*v, r.changed = *original, true
		}
	} else if c := s.Get("const"); c != nil && c.Kind != tree.String && c.Kind != tree.Null && gemini.String(c) == v.Text() {
		*v, r.changed = *c, true
	}
}

// declared maps the strings that an enum is declared by to its values, once for
// each enum. A string is declared by itself, whatever else looks like it.
func (r *restorer) declared(enum *tree.Node) map[string]*tree.Node {
	if known, ok := r.byString[enum]; ok {
		return known
	}
	values := make(map[string]*tree.Node, len(enum.Items))
	for _, e := range enum.Items {
		if e.Kind == tree.Null {
			continue
		}
		s := gemini.String(e)
		if old := values[s]; old == nil || old.Kind != tree.String && e.Kind == tree.String {
			values[s] = e
		}
	}
	if r.byString == nil {
		r.byString = map[*tree.Node]map[string]*tree.Node{}
	}
	r.byString[enum] = values
	return values
}

// someTakes reports whether one of the branches plainly allows the string v.
func (r *restorer) someTakes(branches []*tree.Node, v *tree.Node, depth int) bool {
	for _, b := range branches {
		if depth > maxNesting || !r.spend(1) {
			return true
		}
		if target, err := r.refs.Resolve(b); err == nil {
			b = target
		}
		if enum := b.Get("enum"); enum != nil {
			if e := r.declared(enum)[v.Text()]; e != nil && e.Kind == tree.String {
				return true
			}
			continue
		}
		if c := b.Get("const"); c != nil {
			if c.Is(v.Text()) {
				return true
			}
			continue
		}
		if tree.HasType(b, "string") || b.Kind == tree.True {
			return true
		}
	}
	return false
}

// eachParam calls f with every member of v that the schema describes.
func (r *restorer) eachParam(s, v *tree.Node, f func(i int, schema, value *tree.Node)) {
	properties := s.Get("properties")
	if properties == nil || properties.Kind != tree.Object || !r.spend(len(v.Members)) {
		return
	}
	for i := range v.Members {
		if sub := r.refs.Get(properties, v.Members[i].Name); sub != nil {
			f(i, sub, v.Members[i].Value)
		}
	}
}

// optional drops nulls from objects, wherever the schema tells what is there.
// Depth counts the schemas above s that describe v itself: references may lead
// back to them.
func (r *restorer) optional(s, v *tree.Node, depth int) {
	if s == nil || s.Kind != tree.Object || v.Kind != tree.Object && v.Kind != tree.Array ||
		depth > maxNesting || !r.spend(1+len(s.Members)) {
		return
	}
	s, err := r.refs.Resolve(s)
	if err != nil {
		return
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		if list := s.Get(keyword); list != nil {
			for _, branch := range list.Items {
				r.optional(branch, v, depth+1)
			}
		}
	}
	if v.Kind == tree.Array {
		for _, item := range v.Items {
			r.optional(s.Get("items"), item, 0)
		}
		return
	}
	required := tree.NamesIn(s.Get("required"))
	var drop map[int]bool
	r.eachParam(s, v, func(i int, sub, value *tree.Node) {
		if value.Kind != tree.Null {
			r.optional(sub, value, 0)
			return
		}
		if !required[v.Members[i].Name] && !r.takesNull(sub, 0) {
			if drop == nil {
				drop = map[int]bool{}
			}
			drop[i] = true
		}
	})
	r.drop(v, drop)
}

func (r *restorer) drop(v *tree.Node, drop map[int]bool) {
	if len(drop) == 0 {
		return
	}
	kept := make([]tree.Member, 0, len(v.Members))
	for i := range v.Members {
		if !drop[i] {
			kept = append(kept, v.Members[i])
		}
	}
	v.Members, r.changed = kept, true
}

// maxNesting bounds how deep schemas within one place are looked through.
const maxNesting = 20

// takesNull reports whether a schema allows null. In doubt it says yes, and
// the null stays for validation to judge.
func (r *restorer) takesNull(s *tree.Node, depth int) bool {
	if s.Kind != tree.Object {
		return s.Kind != tree.False
	}
	if depth > maxNesting || !r.spend(1+len(s.Members)) {
		return true
	}
	s, err := r.refs.Resolve(s)
	if err != nil {
		return true
	}
	if typ := s.Get("type"); typ != nil && !tree.HasType(s, "null") {
		return false
	}
	if enum := s.Get("enum"); enum != nil && r.spend(len(enum.Items)) && !tree.HoldsNull(enum.Items) {
		return false
	}
	if c := s.Get("const"); c != nil && c.Kind != tree.Null {
		return false
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list := s.Get(keyword); list != nil && !r.someTakeNull(list.Items, depth+1) {
			return false
		}
	}
	return true
}

func (r *restorer) someTakeNull(branches []*tree.Node, depth int) bool {
	for _, b := range branches {
		if r.takesNull(b, depth) {
			return true
		}
	}
	return false
}
