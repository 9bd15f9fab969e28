// Package gemini adapts JSON Schemas to the type Schema of the Gemini API (v1beta),
// a subset of OpenAPI 3.0. If a schema has a part that this type does not support,
// the API rejects the whole request.
//
// [Sanitize] changes a schema as Gemini CLI does. If the API would still reject the
// result ([Takes]), or the schema has parts that sanitizing ignores ([Foreign]), a
// [Fitter] rewrites the schema. [Check] reports the parts that the API would
// reject.
package gemini

import (
	"errors"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/rewrite"
	"github.com/toolreg/toolreg/internal/schema"
)

// Fitter rewrites JSON Schemas to the type Schema: references are inlined, null
// becomes nullable, const an enum with one value, oneOf becomes anyOf, allOf one
// schema, and tuples become lists. Keywords that only restrict values, such as
// additionalProperties and multipleOf, are removed; calls are still checked against
// them.
//
// The zero value is ready to use. It reuses its memory for each schema. It must not
// be used concurrently.
type Fitter struct {
	refs    *schema.Refs
	changes []string
	lost    []string
	inside  []*jsonx.Value // targets of references that are being inlined
	nodes   int            // nodes written so far
	work    int            // members examined so far

	newValues  []jsonx.Value // memory of the new schema
	newMembers []jsonx.Member
}

// Fitted is a schema rewritten to the type Schema.
type Fitted struct {
	Schema  *jsonx.Value // valid until the next call of the fitter
	Changes []string     // descriptions of the changes
	// Lost describes the parts that the type cannot express at all, such as an object
	// with arbitrary keys. The schema is valid, but less specific.
	Lost []string
}

// Limits on the nodes of the result, on the members of objects examined, and on
// nesting including references. They are necessary because an untrusted schema can
// require any amount of work.
const (
	maxNodes = 20_000
	maxWork  = 2_000_000
	maxDepth = 60
)

var errTooLarge = errors.New("its schema is too large with its references inlined")

// Schemas that the type cannot express.
var (
	errFree = errors.New("an object with properties of any name")
	errNone = errors.New("a value that is never valid")
)

// Fit returns root rewritten. The error says why this is impossible. Root is
// not modified.
func (f *Fitter) Fit(root *jsonx.Value) (Fitted, error) {
	*f = Fitter{refs: schema.NewRefs(root), newValues: f.newValues[:0], newMembers: f.newMembers[:0]}
	root = f.plainRoot(root)
	fitted, err := f.schema(root, 0)
	switch {
	case err == errFree: // no params, or only params of any name
		if allowsMore(root) {
			f.lose("params of any name")
		}
		fitted = jsonx.NewObject()
	case err != nil:
		return Fitted{}, err
	}
	return Fitted{fitted, f.changes, f.lost}, nil
}

// plainRoot returns a copy of the root that is of type object and has no
// alternatives.
func (f *Fitter) plainRoot(root *jsonx.Value) *jsonx.Value {
	root = jsonx.NewObject(slices.Clone(root.Members)...)
	for i := range root.Members {
		if m := &root.Members[i]; m.Name == "properties" || m.Name == "required" { // flattening modifies these
			m.Value = &jsonx.Value{Kind: m.Value.Kind, Token: m.Value.Token,
				Members: slices.Clone(m.Value.Members), Items: slices.Clone(m.Value.Items)}
		}
	}
	for _, change := range slices.Concat(rewrite.InlineRoot(root), rewrite.FlattenRoot(root, "enum", "not")) {
		f.changed(change)
	}
	root.Remove("nullable")
	root.Set("type", jsonx.NewString("object"))
	return root
}

// allowsMore reports whether an object schema allows properties that it does not
// declare.
func allowsMore(n *jsonx.Value) bool {
	further, patterns := n.Get("additionalProperties"), n.Get("patternProperties")
	return further != nil && !further.Is(jsonx.False) || patterns.Is(jsonx.Object) && len(patterns.Members) > 0
}

// object returns a new object with room for n members.
func (f *Fitter) object(n int) *jsonx.Value {
	if len(f.newValues) == cap(f.newValues) {
		f.newValues = make([]jsonx.Value, 0, max(64, 2*cap(f.newValues)))
	}
	if cap(f.newMembers)-len(f.newMembers) < n {
		f.newMembers = make([]jsonx.Member, 0, max(256, n, 2*cap(f.newMembers)))
	}
	end := len(f.newMembers)
	f.newMembers = f.newMembers[:end+n]
	f.newValues = append(f.newValues, jsonx.Value{Kind: jsonx.Object, Members: f.newMembers[end : end : end+n]})
	return &f.newValues[len(f.newValues)-1]
}

// changed records a change without duplicates.
func (f *Fitter) changed(what string) { f.changes = addNote(f.changes, what) }

// lose records a part that cannot be expressed, without duplicates.
func (f *Fitter) lose(what string) { f.lost = addNote(f.lost, what) }

// addNote adds a text to a list unless the list has it already. The list is limited,
// because an untrusted schema can have any number of changes; its last entry then
// says that there are more.
func addNote(list []string, what string) []string {
	const more, most = "and more", 20
	switch {
	case slices.Contains(list, what):
		return list
	case len(list) < most:
		return append(list, what)
	case len(list) == most:
		return append(list, more)
	}
	return list
}

// schema returns n rewritten as a new node. The error is errFree or errNone if n
// cannot be expressed, and errTooLarge if the whole schema is too large.
func (f *Fitter) schema(n *jsonx.Value, depth int) (*jsonx.Value, error) {
	f.nodes++
	f.work += len(n.Members)
	switch {
	case f.nodes > maxNodes || depth > maxDepth:
		return nil, errTooLarge
	case n.Is(jsonx.False):
		return nil, errNone
	case !n.Is(jsonx.Object):
		return f.anything(jsonx.NewObject()), nil
	case n.Get("$ref") != nil:
		return f.reference(n, depth)
	}
	n = f.merged(n)
	if f.work > maxWork {
		return nil, errTooLarge
	}
	list := branches(n)
	if list != nil && isUnion(n, list) {
		return f.union(n, list, depth)
	} else if list != nil {
		f.changed("conditions of anyOf and oneOf dropped")
	}
	return f.plain(n, depth)
}

// reference inlines the target of a reference. Keywords next to the reference take
// precedence.
func (f *Fitter) reference(n *jsonx.Value, depth int) (*jsonx.Value, error) {
	target := f.refs.Lookup(n.Get("$ref").Text())
	switch {
	case target != nil && slices.Contains(f.inside, target):
		f.lose("a schema that contains itself")
		return f.anything(n), nil
	case target.Is(jsonx.False):
		return nil, errNone
	case !target.Is(jsonx.Object):
		return f.anything(n), nil
	}
	f.changed("references inlined")
	merged := f.object(len(n.Members) + len(target.Members))
	for _, m := range n.Members {
		if m.Name != "$ref" {
			merged.Members = append(merged.Members, m)
		}
	}
	for _, m := range target.Members {
		schema.Add(merged, m)
	}
	f.inside = append(f.inside, target)
	defer func() { f.inside = f.inside[:len(f.inside)-1] }()
	return f.schema(merged, depth+1)
}

// anything returns a schema for any value. Because the API requires a type, it is a
// union of common types.
func (f *Fitter) anything(n *jsonx.Value) *jsonx.Value {
	if e := n.Get("enum"); e.Is(jsonx.Array) && len(e.Items) == 0 {
		f.lose("an enum without values")
	}
	f.lose("a value of any type")
	union := jsonx.NewArray()
	for _, t := range []string{"string", "number", "boolean"} {
		branch := schema.OfType(t)
		copyTexts(n, branch)
		union.Items = append(union.Items, branch)
	}
	return jsonx.NewObject(jsonx.NewMember("anyOf", union))
}

// plain rewrites a schema without alternatives. A schema with several types becomes
// a union with one schema for each type.
func (f *Fitter) plain(n *jsonx.Value, depth int) (*jsonx.Value, error) {
	types, null := f.types(n)
	switch {
	case len(types) > 1:
		rest := jsonx.NewObject(slices.DeleteFunc(slices.Clone(n.Members),
			func(m jsonx.Member) bool { return m.Name == "type" || m.Name == "enum" })...)
		return f.union(rest, splitTypes(n, types), depth)
	case len(types) == 0 && null: // only null
		out := schema.OfType("null")
		copyTexts(n, out)
		return out, nil
	case len(types) == 0:
		return f.anything(n), nil
	}
	return f.typed(n, types[0], null, depth)
}

// typed rewrites a schema of one type. null is set if it also accepts null.
func (f *Fitter) typed(n *jsonx.Value, typ string, null bool, depth int) (*jsonx.Value, error) {
	out := f.object(len(n.Members) + 4) // type, enum, nullable, maxItems
	if named := n.Get("type"); named.IsText(typ) {
		out.Set("type", named)
	} else {
		out.Set("type", jsonx.NewString(typ))
	}
	copyTexts(n, out)
	values := f.values(n)
	if values != nil {
		out.Set("enum", values)
	}
	if enum := n.Get("enum"); n.Get("type") == nil && enum != nil && schema.HoldsNull(enum.Items) {
		null = true
	}
	if null || n.Get("nullable").Is(jsonx.True) {
		out.Set("nullable", jsonx.NewBool(true))
	}
	f.limits(n, out)
	switch name := strings.ToLower(typ); {
	case values != nil: // the values of an enum are strings in the type Schema
	case name == "object":
		return out, f.properties(n, out, depth)
	case name == "array":
		return out, f.array(n, out, depth)
	}
	return out, nil
}

// types returns the types of n without null, and whether null is one of them. If n
// has no explicit types, they are derived from the other keywords.
func (f *Fitter) types(n *jsonx.Value) (types []string, null bool) {
	typ := n.Get("type")
	named := []*jsonx.Value{typ}
	if typ.Is(jsonx.Array) {
		named = typ.Items
	}
	for _, t := range named {
		switch name := t.Text(); {
		case strings.EqualFold(name, "null"):
			f.changed("null as a type written as nullable")
			null = true
		case isType(name) && !slices.Contains(types, name):
			types = append(types, name)
		}
	}
	if len(types) > 0 || null {
		return types, null
	}
	if list := constants(n); len(list) > 0 &&
		!slices.ContainsFunc(list, func(v *jsonx.Value) bool { return !v.Is(jsonx.Null) }) {
		f.changed("an enum of null written as the type null")
		return nil, true
	}
	if guess := guessedType(n); guess != "" {
		f.changed("types added")
		return []string{guess}, false
	}
	return nil, false
}

// guessedType returns the type that the values or keywords of a schema imply, or
// "".
func guessedType(n *jsonx.Value) string {
	if name := typeOfValues(n); name != "" {
		return name
	}
	for _, guess := range []struct{ keyword, typ string }{
		{"properties", "object"}, {"required", "object"}, {"items", "array"}, {"prefixItems", "array"},
		{"pattern", "string"}, {"minLength", "string"}, {"maxLength", "string"},
		{"minimum", "number"}, {"maximum", "number"},
	} {
		if n.Get(guess.keyword) != nil {
			return guess.typ
		}
	}
	return ""
}

func typeOfValues(n *jsonx.Value) string {
	found := ""
	for _, v := range constants(n) {
		switch name := schema.TypeOf(v); {
		case name == "null" || name == found:
		case found == "":
			found = name
		default: // values are declared as strings in any case
			return "string"
		}
	}
	return found
}

// constants returns the values of const or enum, or nil if there is neither.
func constants(n *jsonx.Value) []*jsonx.Value {
	if c := n.Get("const"); c != nil {
		return []*jsonx.Value{c}
	}
	return n.Get("enum").Elements()
}

// values returns the values of enum or const without null and values that the API
// rejects. It returns nil if there are none.
func (f *Fitter) values(n *jsonx.Value) *jsonx.Value {
	list := constants(n)
	switch {
	case n.Get("const") != nil:
		f.changed("const written as an enum of one")
	case len(list) == 0:
		if n.Get("enum").Is(jsonx.Array) {
			f.changed("an enum without values dropped")
		}
		return nil
	}
	items := slices.DeleteFunc(slices.Clone(list), func(v *jsonx.Value) bool { return v.Is(jsonx.Null) })
	if len(items) == 0 {
		f.lose("an enum without values")
		return nil
	}
	if len(items) < len(list) {
		f.changed("null omitted from an enum")
	}
	if refused := func(v *jsonx.Value) bool { return String(v) == "" }; slices.ContainsFunc(items, refused) {
		f.lose("an empty string as a value of an enum")
		if items = slices.DeleteFunc(items, refused); len(items) == 0 {
			return nil
		}
	}
	return jsonx.NewArray(items...)
}

// splitTypes returns one schema for each type, with the values of that type.
// Keywords of n that apply to another type are omitted.
func splitTypes(n *jsonx.Value, types []string) []*jsonx.Value {
	out := make([]*jsonx.Value, len(types))
	for i, t := range types {
		out[i] = schema.OfType(t)
		if enum := n.Get("enum"); enum != nil {
			others := func(v *jsonx.Value) bool { return !isOf(v, strings.ToLower(t)) }
			out[i].Set("enum", jsonx.NewArray(slices.DeleteFunc(slices.Clone(enum.Items), others)...))
		}
	}
	if typ := n.Get("type"); typ.Is(jsonx.Array) && slices.ContainsFunc(typ.Items, isNullName) {
		out = append(out, schema.OfType("null"))
	}
	return out
}

func isOf(v *jsonx.Value, typ string) bool {
	name := schema.TypeOf(v)
	return name == typ || name == "integer" && typ == "number"
}

func isNullName(n *jsonx.Value) bool { return strings.EqualFold(n.Text(), "null") }
