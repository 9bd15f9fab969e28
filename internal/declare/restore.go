package declare

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/registry"
)

// RestoreEnums undoes in params what format gemini does to enums and const: where
// the tool's own schema lists values that are no strings and params hold one of
// them as the string it was declared as, the original value comes back. A
// string that the schema itself allows stays a string. Everything else keeps
// its bytes but for white space; where nothing is to restore, or where schema
// or params cannot be read or hold a key twice, params come back as they are.
func RestoreEnums(schema, params json.RawMessage) json.RawMessage {
	return restore(schema, params, func(r *restorer, s, v *node) { r.enums(s, v, 0) })
}

// RestoreOptional undoes in params what strict declarations ask for: a null
// for an optional param is dropped, unless the tool's own schema allows null
// there. Like [RestoreEnums] it touches nothing else.
func RestoreOptional(schema, params json.RawMessage) json.RawMessage {
	return restore(schema, params, func(r *restorer, s, v *node) { r.optional(s, v, 0) })
}

// minSteps and stepsPerByte bound the work on params; a schema can ask for any
// amount.
const (
	minSteps     = 100_000
	stepsPerByte = 8
)

// restorer walks params along the schema that describes them.
type restorer struct {
	refs    *resolver
	steps   int // still to be spent
	changed bool

	byString map[*node]map[string]*node // values of an enum by what declares them
}

func restore(schema, params json.RawMessage, walk func(r *restorer, s, v *node)) json.RawMessage {
	if len(schema) > registry.MaxSchemaBytes || len(params) > registry.MaxParamsBytes {
		return params
	}
	var forSchema, forParams parser
	s, err := forSchema.parse(schema, registry.MaxDepth)
	if err != nil {
		return params
	}
	v, err := forParams.parse(params, registry.MaxDepth)
	if err != nil || forParams.duplicate {
		return params
	}
	r := &restorer{refs: newResolver(s), steps: minSteps + stepsPerByte*len(params)}
	walk(r, s, v)
	if !r.changed {
		return params
	}
	return v.appendTo(nil)
}

// spend counts n steps, about the keys and values looked at, and reports
// whether they may be made.
func (r *restorer) spend(n int) bool {
	r.steps -= n
	return r.steps >= 0
}

// enums follows the path of sanitize and of geminiFitter. Depth counts the
// schemas above s that describe v itself: references may lead back to them.
func (r *restorer) enums(s, v *node, depth int) {
	if s == nil || s.kind != kindObject || depth > maxNesting || !r.spend(1+len(s.members)) {
		return
	}
	if v.kind != kindString && v.kind != kindArray && v.kind != kindObject {
		return
	}
	s, err := r.refs.resolve(s)
	if err != nil {
		return
	}
	r.enum(s, v)
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		list := s.get(keyword)
		if list == nil || v.kind == kindString && keyword != "allOf" && r.someTakes(list.items, v, depth) {
			continue
		}
		for _, branch := range list.items {
			r.enums(branch, v, depth+1)
		}
	}
	switch v.kind {
	case kindArray:
		for i, item := range v.items {
			r.enums(itemSchema(s, i), item, 0)
		}
	case kindObject:
		r.eachParam(s, v, func(_ int, sub, value *node) { r.enums(sub, value, 0) })
	}
}

// itemSchema returns the schema of the item at a place of a list.
func itemSchema(s *node, i int) *node {
	items := s.get("items")
	places, rest := s.get("prefixItems"), items
	if items != nil && items.kind == kindArray { // as before draft 2020-12
		places, rest = items, s.get("additionalItems")
	}
	if places != nil && i < len(places.items) {
		return places.items[i]
	}
	return rest
}

// enum restores a value of an enum, or of the enum of one that const is.
func (r *restorer) enum(s, v *node) {
	if v.kind != kindString {
		return
	}
	if enum := s.get("enum"); enum != nil && enum.kind == kindArray {
		if original := r.declared(enum)[v.text()]; original != nil && original.kind != kindString {
			*v, r.changed = *original, true
		}
	} else if c := s.get("const"); c != nil && c.kind != kindString && c.kind != kindNull && scriptString(c) == v.text() {
		*v, r.changed = *c, true
	}
}

// declared maps the strings that an enum is declared by to its values, once for
// each enum. A string is declared by itself, whatever else looks like it.
func (r *restorer) declared(enum *node) map[string]*node {
	if known, ok := r.byString[enum]; ok {
		return known
	}
	values := make(map[string]*node, len(enum.items))
	for _, e := range enum.items {
		if e.kind == kindNull {
			continue
		}
		s := scriptString(e)
		if old := values[s]; old == nil || old.kind != kindString && e.kind == kindString {
			values[s] = e
		}
	}
	if r.byString == nil {
		r.byString = map[*node]map[string]*node{}
	}
	r.byString[enum] = values
	return values
}

// someTakes reports whether one of the branches plainly allows the string v.
func (r *restorer) someTakes(branches []*node, v *node, depth int) bool {
	for _, b := range branches {
		if depth > maxNesting || !r.spend(1) {
			return true
		}
		if target, err := r.refs.resolve(b); err == nil {
			b = target
		}
		if enum := b.get("enum"); enum != nil {
			if e := r.declared(enum)[v.text()]; e != nil && e.kind == kindString {
				return true
			}
			continue
		}
		if c := b.get("const"); c != nil {
			if c.is(v.text()) {
				return true
			}
			continue
		}
		if hasType(b, "string") || b.kind == kindTrue {
			return true
		}
	}
	return false
}

// eachParam calls f with every member of v that the schema describes.
func (r *restorer) eachParam(s, v *node, f func(i int, schema, value *node)) {
	properties := s.get("properties")
	if properties == nil || properties.kind != kindObject || !r.spend(len(v.members)) {
		return
	}
	for i := range v.members {
		if sub := r.refs.get(properties, v.members[i].name); sub != nil {
			f(i, sub, v.members[i].value)
		}
	}
}

// optional drops nulls from objects, wherever the schema tells what is there.
// Depth counts the schemas above s that describe v itself: references may lead
// back to them.
func (r *restorer) optional(s, v *node, depth int) {
	if s == nil || s.kind != kindObject || v.kind != kindObject && v.kind != kindArray ||
		depth > maxNesting || !r.spend(1+len(s.members)) {
		return
	}
	s, err := r.refs.resolve(s)
	if err != nil {
		return
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		if list := s.get(keyword); list != nil {
			for _, branch := range list.items {
				r.optional(branch, v, depth+1)
			}
		}
	}
	if v.kind == kindArray {
		for _, item := range v.items {
			r.optional(s.get("items"), item, 0)
		}
		return
	}
	required := namesIn(s.get("required"))
	var drop map[int]bool
	r.eachParam(s, v, func(i int, sub, value *node) {
		if value.kind != kindNull {
			r.optional(sub, value, 0)
			return
		}
		if !required[v.members[i].name] && !r.takesNull(sub, 0) {
			if drop == nil {
				drop = map[int]bool{}
			}
			drop[i] = true
		}
	})
	r.drop(v, drop)
}

func (r *restorer) drop(v *node, drop map[int]bool) {
	if len(drop) == 0 {
		return
	}
	kept := make([]member, 0, len(v.members))
	for i := range v.members {
		if !drop[i] {
			kept = append(kept, v.members[i])
		}
	}
	v.members, r.changed = kept, true
}

// maxNesting bounds how deep schemas within one place are looked through.
const maxNesting = 20

// takesNull reports whether a schema allows null. In doubt it says yes, and
// the null stays for validation to judge.
func (r *restorer) takesNull(s *node, depth int) bool {
	if s.kind != kindObject {
		return s.kind != kindFalse
	}
	if depth > maxNesting || !r.spend(1+len(s.members)) {
		return true
	}
	s, err := r.refs.resolve(s)
	if err != nil {
		return true
	}
	if typ := s.get("type"); typ != nil && !hasType(s, "null") {
		return false
	}
	if enum := s.get("enum"); enum != nil && r.spend(len(enum.items)) && !holdsNull(enum.items) {
		return false
	}
	if c := s.get("const"); c != nil && c.kind != kindNull {
		return false
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list := s.get(keyword); list != nil && !r.someTakeNull(list.items, depth+1) {
			return false
		}
	}
	return true
}

func (r *restorer) someTakeNull(branches []*node, depth int) bool {
	for _, b := range branches {
		if r.takesNull(b, depth) {
			return true
		}
	}
	return false
}

func holdsNull(items []*node) bool {
	for _, v := range items {
		if v.kind == kindNull {
			return true
		}
	}
	return false
}

func namesIn(list *node) map[string]bool {
	if list == nil {
		return nil
	}
	names := make(map[string]bool, len(list.items))
	for _, v := range list.items {
		names[v.text()] = true
	}
	return names
}
