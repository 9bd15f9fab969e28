package declare

import (
	"errors"
	"fmt"
	"slices"
)

// geminiFitter rewrites a JSON Schema into the type Schema of the Gemini API, a
// subset of OpenAPI 3.0's (protocol of the API, v1beta, Schema): references are
// inlined, null becomes nullable, const an enum of one, oneOf and allOf become
// anyOf and one schema, tuples lists. What only narrows what is allowed, such as
// additionalProperties or multipleOf, goes; calls are still checked against it.
//
// What the type cannot say at all, such as an object with keys of any name, is
// recorded in lost. The schema stays valid then, but says less.
type geminiFitter struct {
	refs    *resolver
	changes []string
	lost    []string
	inside  []*node // targets of references that are being inlined
	nodes   int     // written so far
	work    int     // members looked at so far

	memory  []node // of the schema that is made; good until the next
	members []member
}

// Bounds on the schema that inlining makes, in nodes, and on the work, in
// members of objects: a schema from outside can ask for any amount.
const (
	maxFitted      = 20_000
	maxFittingWork = 2_000_000
)

var errTooLarge = errors.New("its schema is too large once its references stand in their places")

// What the API has no words for.
var (
	errFree = errors.New("an object with properties of any name")
	errNone = errors.New("a value that is never valid")
)

// fit returns root rewritten, in memory that is good until the next call. The
// error says why it cannot be. Root stays as it is.
func (f *geminiFitter) fit(root *node) (*node, error) {
	*f = geminiFitter{refs: newResolver(root), memory: f.memory[:0], members: f.members[:0]}
	root = newObject(slices.Clone(root.members)...)
	for i := range root.members {
		if m := &root.members[i]; m.name == "properties" || m.name == "required" { // flatRoot adds to them
			m.value = &node{kind: m.value.kind, token: m.value.token, members: slices.Clone(m.value.members), items: slices.Clone(m.value.items)}
		}
	}
	for _, change := range slices.Concat(inlinedRoot(root), flatRoot(root, "allOf", "anyOf", "oneOf", "enum", "not")) {
		f.changed(change)
	}
	root.remove("nullable")
	root.set("type", newString("object"))
	fitted, err := f.schema(root, 0)
	switch {
	case err == errFree: // no params, or none that have a name
		if further := root.get("additionalProperties"); further != nil && further.kind != kindFalse {
			f.lose("params of any name")
		}
		return newObject(), nil
	case err != nil:
		return nil, err
	}
	return fitted, nil
}

// object returns a new object with room for n members.
func (f *geminiFitter) object(n int) *node {
	if len(f.memory) == cap(f.memory) {
		f.memory = make([]node, 0, max(64, 2*cap(f.memory)))
	}
	if cap(f.members)-len(f.members) < n {
		f.members = make([]member, 0, max(256, n, 2*cap(f.members)))
	}
	end := len(f.members)
	f.members = f.members[:end+n]
	f.memory = append(f.memory, node{kind: kindObject, members: f.members[end : end : end+n]})
	return &f.memory[len(f.memory)-1]
}

// changed notes what was rewritten, once.
func (f *geminiFitter) changed(what string) { f.changes = noted(f.changes, what) }

// lose notes what cannot be said, once.
func (f *geminiFitter) lose(what string) { f.lost = noted(f.lost, what) }

// noted adds a text that is not there yet. The list ends with a word that there
// is more: a schema from outside can hold any number of things to note.
func noted(list []string, what string) []string {
	const more = "and more"
	switch {
	case slices.Contains(list, what):
		return list
	case len(list) < 2*maxNamed:
		return append(list, what)
	case len(list) == 2*maxNamed:
		return append(list, more)
	}
	return list
}

// schema returns n rewritten as a new node. The error is errFree or errNone
// where nothing can stand in its place, errTooLarge where the whole is lost.
func (f *geminiFitter) schema(n *node, depth int) (*node, error) {
	f.nodes++
	f.work += len(n.members)
	if f.nodes > maxFitted || f.work > maxFittingWork || depth > maxGeminiDepth {
		return nil, errTooLarge
	}
	switch {
	case n.kind == kindFalse:
		return nil, errNone
	case n.kind != kindObject:
		return f.anything(newObject()), nil
	}
	if n.get("$ref") != nil {
		return f.reference(n, depth)
	}
	n = f.flat(n)
	if list := branches(n); list != nil && unites(n, list) {
		return f.union(n, list, depth)
	} else if list != nil {
		f.changed("conditions of anyOf and oneOf dropped")
	}
	return f.plain(n, depth)
}

// maxGeminiDepth bounds nesting, references followed.
const maxGeminiDepth = 60

// reference inlines the target of a reference; what stands beside it wins.
func (f *geminiFitter) reference(n *node, depth int) (*node, error) {
	target := f.refs.lookup(n.get("$ref").text())
	if target == nil || target.kind != kindObject || slices.Contains(f.inside, target) {
		if target != nil && target.kind == kindFalse {
			return nil, errNone
		}
		if target != nil && slices.Contains(f.inside, target) {
			f.lose("a schema that holds itself")
		}
		return f.anything(n), nil
	}
	f.changed("references inlined")
	merged := f.object(len(n.members) + len(target.members))
	for _, m := range n.members {
		if m.name != "$ref" {
			merged.members = append(merged.members, m)
		}
	}
	have := byName(merged)
	for _, m := range target.members {
		if have[m.name] == nil {
			merged.members = append(merged.members, m)
		}
	}
	f.inside = append(f.inside, target)
	defer func() { f.inside = f.inside[:len(f.inside)-1] }()
	return f.schema(merged, depth+1)
}

// anything stands for any value: the API wants a type, so the common ones.
func (f *geminiFitter) anything(n *node) *node {
	f.lose("a value of any type")
	branches := newArray()
	for _, t := range []string{"string", "number", "boolean"} {
		branch := newObject(newMember("type", newString(t)))
		f.copyTexts(n, branch)
		branches.items = append(branches.items, branch)
	}
	return newObject(newMember("anyOf", branches))
}

// plain rewrites a schema of one type.
func (f *geminiFitter) plain(n *node, depth int) (*node, error) {
	types, null := f.types(n)
	if len(types) > 1 {
		split := splitTypes(n, types)
		rest := newObject(slices.DeleteFunc(slices.Clone(n.members), func(m member) bool { return m.name == "type" || m.name == "enum" })...)
		return f.union(rest, split, depth)
	}
	if len(types) == 0 {
		if null { // null and nothing else
			return newObject(newMember("type", newString("null"))), nil
		}
		return f.anything(n), nil
	}
	typ := types[0]
	out := f.object(len(n.members) + 4) // type, enum, nullable, maxItems
	if own := n.get("type"); own.is(typ) {
		out.set("type", own)
	} else {
		out.set("type", newString(typ))
	}
	f.copyTexts(n, out)
	if enum := f.values(n); enum != nil {
		out.set("enum", enum)
	}
	if enum := n.get("enum"); n.get("type") == nil && enum != nil && holdsNull(enum.items) {
		null = true
	}
	if null || n.get("nullable") != nil && n.get("nullable").kind == kindTrue {
		out.set("nullable", &node{kind: kindTrue, token: "true"})
	}
	f.limits(n, out)
	var err error
	switch lowered(typ) {
	case "object":
		err = f.properties(n, out, depth)
	case "array":
		err = f.array(n, out, depth)
	}
	return out, err
}

// types returns the types of n, null apart. Where none are named they are those
// of what the other keywords speak of.
func (f *geminiFitter) types(n *node) (types []string, null bool) {
	typ := n.get("type")
	if name := typ.text(); name != "" && lowered(name) != "null" && geminiTypeName(name) {
		return []string{name}, false
	}
	named := []*node{typ}
	if typ != nil && typ.kind == kindArray {
		named = typ.items
	}
	for _, t := range named {
		switch name := t.text(); {
		case lowered(name) == "null":
			f.changed("null as a type written as nullable")
			null = true
		case geminiTypeName(name) && !slices.Contains(types, name):
			types = append(types, name)
		}
	}
	if len(types) > 0 || null {
		return types, null
	}
	if c := n.get("const"); c != nil && c.kind == kindNull {
		return nil, true
	}
	return f.guessed(n), false
}

func (f *geminiFitter) guessed(n *node) []string {
	values := n.get("enum")
	if c := n.get("const"); c != nil {
		values = newArray(c)
	}
	var types []string
	if values != nil {
		for _, v := range values.items {
			if t := typeName(v); t != "null" && !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
		if len(types) > 1 { // its values are declared as strings in any case
			types = []string{"string"}
		}
	}
	for _, guess := range []struct{ keyword, typ string }{
		{"properties", "object"}, {"required", "object"}, {"items", "array"}, {"prefixItems", "array"},
		{"pattern", "string"}, {"minLength", "string"}, {"maxLength", "string"},
		{"minimum", "number"}, {"maximum", "number"},
	} {
		if len(types) == 0 && n.get(guess.keyword) != nil {
			types = []string{guess.typ}
		}
	}
	if len(types) > 0 {
		f.changed("types added")
	}
	return types
}

// values returns enum or const as a list without null, nil where nothing is in
// it.
func (f *geminiFitter) values(n *node) *node {
	list := n.get("enum")
	if c := n.get("const"); c != nil {
		f.changed("const written as an enum of one")
		list = newArray(c)
	}
	if list == nil || len(list.items) == 0 {
		return nil
	}
	if !holdsNull(list.items) {
		return list
	}
	items := slices.DeleteFunc(slices.Clone(list.items), func(v *node) bool { return v.kind == kindNull })
	if len(items) == 0 {
		return nil
	}
	return newArray(items...)
}

// properties rewrites those of an object. One that cannot be said goes, if it may.
func (f *geminiFitter) properties(n, out *node, depth int) error {
	properties := n.get("properties")
	if properties == nil || properties.kind != kindObject || len(properties.members) == 0 {
		return errFree
	}
	if further := n.get("additionalProperties"); further != nil && further.kind != kindFalse {
		f.changed("further properties of any name not declared")
	}
	required := namesIn(n.get("required"))
	fitted := f.object(len(properties.members))
	needed := newArray()
	for i := range properties.members {
		m := &properties.members[i]
		value, err := f.schema(m.value, depth+1)
		switch {
		case errors.Is(err, errFree) && required[m.name]:
			return fmt.Errorf("its property %.80q, which is required, is %w", m.name, err)
		case errors.Is(err, errFree):
			f.lose(fmt.Sprintf("the property %.80q, %v", m.name, err))
			continue
		case errors.Is(err, errNone):
			continue
		case err != nil:
			return err
		}
		fitted.members = append(fitted.members, member{m.name, m.token, value})
		if required[m.name] {
			needed.items = append(needed.items, &node{kind: kindString, token: m.token})
		}
	}
	if len(fitted.members) == 0 {
		return errFree
	}
	out.set("properties", fitted)
	if len(needed.items) > 0 {
		out.set("required", needed)
	}
	return nil
}
