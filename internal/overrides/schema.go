package overrides

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
	"github.com/toolreg/toolreg/internal/text"
)

// maxInlined limits how many references to object schemas are followed.
const maxInlined = 16

// object is the input schema of a tool while an override changes its params.
// Params are found only where a schema is certain to define them: in the root, in
// the target of its reference, and in the members of allOf.
type object struct {
	root  *jsonx.Value
	given json.RawMessage // the tool's own schema
	refs  *schema.Refs    // in given; nil until first used
	parts []*jsonx.Value  // the root and the schemas that apply together with it
}

// newObject parses a schema. If it is not an object, it is treated as empty.
func newObject(given json.RawMessage) *object {
	root, err := jsonx.Parse(given, jsonx.Options{Depth: registry.MaxDepth})
	if err != nil {
		root = jsonx.NewObject()
	}
	o, left := &object{root: root, given: given}, maxInlined
	o.collect(root, &left)
	return o
}

// collect finds the parts within s. It replaces references with copies of their
// targets, because other references may have the same target.
func (o *object) collect(s *jsonx.Value, left *int) {
	for s.Get("$ref").Is(jsonx.String) && *left > 0 {
		*left--
		target := o.references().Lookup(s.Get("$ref").Text())
		if !target.Is(jsonx.Object) {
			break
		}
		s.Remove("$ref")
		inline(s, target.Clone())
	}
	o.parts = append(o.parts, s)
	for _, member := range s.Get("allOf").Elements() {
		if member.Is(jsonx.Object) {
			o.collect(member, left)
		}
	}
}

func (o *object) references() *schema.Refs {
	if o.refs == nil {
		o.refs = schema.NewRefs(parse(o.given))
	}
	return o.refs
}

// inline adds the keywords of a referenced schema to s. If they would have a
// different meaning there, it adds the whole schema as a member of allOf instead.
func inline(s, target *jsonx.Value) {
	const rest = "additionalProperties" // depends on the properties and patternProperties next to it
	apart := s.Get(rest) != nil ||
		target.Get(rest) != nil && (s.Get("properties") != nil || s.Get("patternProperties") != nil)
	apart = apart || slices.ContainsFunc(target.Members, func(m jsonx.Member) bool { return s.Get(m.Name) != nil })
	if apart {
		all := s.Get("allOf")
		if !all.Is(jsonx.Array) {
			all = jsonx.NewArray()
			s.Set("allOf", all)
		}
		all.Items = append(all.Items, target)
		return
	}
	s.Members = append(s.Members, target.Members...)
}

// propertiesWith returns the "properties" of every part that defines a param.
func (o *object) propertiesWith(name string) []*jsonx.Value {
	var out []*jsonx.Value
	for _, part := range o.parts {
		if properties := part.Get("properties"); properties.Get(name) != nil {
			out = append(out, properties)
		}
	}
	return out
}

// names returns the names of all params, without duplicates.
func (o *object) names() []string {
	var out []string
	for _, part := range o.parts {
		for _, m := range part.Get("properties").Fields() {
			out = text.AppendNew(out, m.Name)
		}
	}
	return out
}

func (o *object) requires(name string) bool {
	return slices.ContainsFunc(o.parts, func(part *jsonx.Value) bool { return schema.Required(part)[name] })
}

// refersTo reports whether the schema has a reference to a param of the root.
func (o *object) refersTo(name string) bool {
	ref := []byte("#/properties/" + jsonx.EscapeToken(name))
	for rest, found := []byte(o.given), true; found; {
		_, rest, found = bytes.Cut(rest, ref)
		if bytes.HasPrefix(rest, []byte(`"`)) || bytes.HasPrefix(rest, []byte("/")) {
			return true
		}
	}
	return false
}

func (o *object) makeOptional(name string) {
	for _, part := range o.parts {
		list := part.Get("required")
		if !list.Is(jsonx.Array) {
			continue
		}
		list.Items = slices.DeleteFunc(list.Items, func(v *jsonx.Value) bool { return v.IsText(name) })
		if len(list.Items) == 0 {
			part.Remove("required")
		}
	}
}

func (o *object) remove(name string) {
	for _, properties := range o.propertiesWith(name) {
		properties.Remove(name)
	}
	o.makeOptional(name)
}

// dropUnused removes definitions to which nothing refers: those of params that are no longer
// declared, and what was copied from them. If a reference is not a path, all stay.
func (o *object) dropUnused() {
	keywords := []string{"$defs", "definitions"}
	unused := map[string]*jsonx.Value{}
	for _, keyword := range keywords {
		for _, m := range o.root.Get(keyword).Fields() {
			unused[keyword+"/"+m.Name] = m.Value
		}
	}
	if len(unused) == 0 {
		return
	}
	pending := []*jsonx.Value{o.root}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	take := func(path string) {
		keyword, rest, _ := strings.Cut(path, "/")
		name, _, _ := strings.Cut(rest, "/")
		key := keyword + "/" + unescape.Replace(name)
		if def := unused[key]; def != nil {
			delete(unused, key)
			pending = append(pending, def)
		}
	}
	isOther := false // whether a reference is not a path
	var use func(v *jsonx.Value)
	use = func(v *jsonx.Value) {
		if path, isPath := strings.CutPrefix(v.Text(), "#/"); isPath {
			take(path)
			if decoded, err := url.PathUnescape(path); err == nil {
				take(decoded)
			}
		}
		for _, item := range v.Items {
			use(item)
		}
		for _, m := range v.Members {
			if v == o.root && slices.Contains(keywords, m.Name) {
				continue
			}
			isRef := m.Value.Is(jsonx.String) && slices.Contains([]string{"$ref", "$dynamicRef", "$recursiveRef"}, m.Name)
			isOther = isOther || isRef && !strings.HasPrefix(m.Value.Text(), "#/")
			use(m.Value)
		}
	}
	for len(pending) > 0 {
		last := len(pending) - 1
		v := pending[last]
		pending = pending[:last]
		use(v)
	}
	if isOther {
		return
	}
	for _, keyword := range keywords {
		defs := o.root.Get(keyword)
		if !defs.Is(jsonx.Object) {
			continue
		}
		defs.Members = slices.DeleteFunc(defs.Members, func(m jsonx.Member) bool { return unused[keyword+"/"+m.Name] != nil })
		if len(defs.Members) == 0 {
			o.root.Remove(keyword)
		}
	}
}

// rename renames all given params at once, so that names can be swapped.
func (o *object) rename(to map[string]string) {
	for _, part := range o.parts {
		properties := part.Get("properties")
		for i, m := range properties.Fields() {
			if name, ok := to[m.Name]; ok {
				properties.Members[i] = jsonx.NewMember(name, m.Value)
			}
		}
		list := part.Get("required")
		for i, v := range list.Elements() {
			if name, ok := to[v.Text()]; ok {
				list.Items[i] = jsonx.NewString(name)
			}
		}
	}
}

// conditional returns the keyword under which the schema has further conditions on
// a param, or "" if it has none. Removing, renaming or presetting such a param
// would change the meaning of those conditions.
func (o *object) conditional(name string) string {
	for _, part := range o.parts {
		for _, m := range part.Members {
			if o.mentions(m.Name, m.Value, name, maxInlined) {
				return m.Name
			}
		}
	}
	return ""
}

func (o *object) mentions(keyword string, v *jsonx.Value, name string, depth int) bool {
	within := func(s *jsonx.Value) bool { return o.isNamedIn(s, name, depth) }
	switch keyword {
	case "anyOf", "oneOf", "not", "if", "then", "else":
		return within(v) || v.Is(jsonx.Array) && slices.ContainsFunc(v.Items, within)
	case "dependentSchemas", "dependentRequired":
		return slices.ContainsFunc(v.Members, func(m jsonx.Member) bool {
			return m.Name == name || within(m.Value) ||
				slices.ContainsFunc(m.Value.Items, func(item *jsonx.Value) bool { return item.IsText(name) })
		})
	}
	return false
}

// isNamedIn reports whether a schema that applies to the same object names a
// param. It returns true for a schema that is nested too deeply to search.
func (o *object) isNamedIn(s *jsonx.Value, name string, depth int) bool {
	if depth == 0 {
		return true
	}
	if !s.Is(jsonx.Object) {
		return false
	}
	if s.Get("properties").Get(name) != nil || schema.Required(s)[name] {
		return true
	}
	if ref := s.Get("$ref"); ref.Is(jsonx.String) && o.isNamedIn(o.references().Lookup(ref.Text()), name, depth-1) {
		return true
	}
	within := func(m *jsonx.Value) bool { return o.isNamedIn(m, name, depth-1) }
	return slices.ContainsFunc(s.Get("allOf").Elements(), within) || slices.ContainsFunc(s.Members,
		func(m jsonx.Member) bool { return o.mentions(m.Name, m.Value, name, depth-1) })
}

// editable returns the schema of a param as an object to which keywords can be
// added. It wraps a reference in allOf, because older drafts ignore keywords next
// to a reference.
func editable(properties *jsonx.Value, name string) *jsonx.Value {
	s := properties.Get(name)
	switch {
	case !s.Is(jsonx.Object):
		s = jsonx.NewObject()
	case s.Get("$ref") != nil:
		s = jsonx.NewObject(jsonx.NewMember("allOf", jsonx.NewArray(s)))
	default:
		return s
	}
	properties.Set(name, s)
	return s
}

// certainlyAccepts reports whether a schema without keywords other than a type, an enum
// and bounds accepts a value. It avoids compiling the schema, which takes longer than the
// rest of applying an override.
func certainlyAccepts(s *jsonx.Value, raw json.RawMessage) bool {
	if !s.Is(jsonx.Object) {
		return s.Is(jsonx.True)
	}
	value := parse(raw)
	for _, m := range s.Members {
		ok := false
		switch m.Name {
		case "description", "title", "default", "examples":
			ok = true
		case "type":
			ok = schema.HasType(s, schema.TypeOf(value)) || value.Is(jsonx.Number) && schema.HasType(s, "number")
		case "enum":
			ok = slices.ContainsFunc(m.Value.Items, func(v *jsonx.Value) bool {
				return jsonx.Canonical(v.AppendTo(nil)) == jsonx.Canonical(raw)
			})
		case "minimum", "maximum":
			order, known := compareNumbers(value, m.Value)
			ok = known && (order == 0 || (order == 1) == (m.Name == "minimum"))
		}
		if !ok {
			return false
		}
	}
	return true
}

// compareNumbers compares two numbers. known is false if one is not a number, or may not be exact
// as a floating-point number.
func compareNumbers(a, b *jsonx.Value) (order int, known bool) {
	const exact = 15 // digits
	if len(a.Token) > exact || len(b.Token) > exact {
		return 0, false
	}
	x, err := strconv.ParseFloat(a.Token, 64)
	y, err2 := strconv.ParseFloat(b.Token, 64)
	return cmp.Compare(x, y), err == nil && err2 == nil
}

// parse parses JSON that is known to be valid.
func parse(raw json.RawMessage) *jsonx.Value {
	v, err := jsonx.Parse(raw, jsonx.Options{})
	if err != nil {
		return jsonx.NewNull()
	}
	return v
}
