// Package rewrite changes JSON Schemas in place so that a provider's API
// accepts them: syntax of older drafts and of OpenAPI becomes that of draft
// 2020-12, the root becomes a plain object, references without a target are
// removed, and [Strict] produces the subset to which OpenAI can constrain a
// model.
//
// Each function returns descriptions of its changes, or nil if the schema is
// unchanged. The rewritten schema allows everything that the tool's own schema
// does, except that in strict schemas optional values are null instead of absent.
package rewrite

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// TypeRoot adds "type":"object" at the root, as MCP and every API based on JSON
// Schema requires. It returns its changes.
func TypeRoot(root *jsonx.Value) (changes []string) {
	typ := root.Get("type")
	switch {
	case typ == nil:
		root.Prepend("type", jsonx.NewString("object"))
		return []string{`"type":"object" added at the root`}
	case typ.Is(jsonx.Array):
		root.Set("type", jsonx.NewString("object"))
		return []string{"type at the root narrowed to object"}
	}
	return nil
}

// InlineRoot replaces a reference at the root with its target, for APIs that expect
// the properties there. Keywords next to the reference are merged.
func InlineRoot(root *jsonx.Value) (changes []string) {
	if root.Get("$ref") == nil {
		return nil
	}
	target, err := schema.NewRefs(root).Resolve(root)
	if err != nil || target == root || !target.Is(jsonx.Object) {
		return nil
	}
	merged, have := target.Clone(), target.ByName()
	for _, m := range root.Members {
		switch {
		case m.Name == "$defs", m.Name == "definitions":
			// The definitions of the root are kept, since references resolve to them.
			merged.Set(m.Name, m.Value)
		case m.Name != "$ref" && have[m.Name] == nil:
			merged.Members = append(merged.Members, m)
		}
	}
	root.Members = merged.Members
	return []string{"the reference at the root replaced by its target"}
}

// ForOpenAI adds items to every array schema without them, and writes additionalProperties that are an empty
// schema as true, because OpenAI would reject the request.
func ForOpenAI(root *jsonx.Value) (changes []string) {
	arrays, open := false, false
	schema.Walk(root, func(n *jsonx.Value) {
		if schema.HasType(n, "array") && n.Get("items") == nil {
			n.Set("items", jsonx.NewObject())
			arrays = true
		}
		if more := n.Get("additionalProperties"); more.Is(jsonx.Object) && len(more.Members) == 0 {
			n.Set("additionalProperties", jsonx.NewBool(true))
			open = true
		}
	})
	if arrays {
		changes = append(changes, "items added to arrays that had none")
	}
	if open {
		changes = append(changes, "additionalProperties of {} written as true")
	}
	return changes
}

// DropPatterns removes regular expressions that OpenAI's checks reject, because a single one makes
// the API reject the whole request: some of its endpoints compile them as Python's, others forbid
// lookaround.
func DropPatterns(root *jsonx.Value) (changes []string) {
	const change = "patterns removed that not all dialects of regular expressions have"
	return drop(root, change, func(n *jsonx.Value) (dropped bool) {
		if p := n.Get("pattern"); p.Is(jsonx.String) && !schema.IsCommonPattern(p.Text()) {
			dropped = n.Remove("pattern")
		}
		if named := n.Get("patternProperties"); named.Is(jsonx.Object) {
			kept := slices.DeleteFunc(slices.Clone(named.Members),
				func(m jsonx.Member) bool { return !schema.IsCommonPattern(m.Name) })
			if len(kept) < len(named.Members) {
				n.Set("patternProperties", jsonx.NewObject(kept...))
				n.Remove("additionalProperties") // without the pattern, it is unknown which names are additional
				n.Remove("unevaluatedProperties")
				dropped = true
			}
		}
		return dropped
	})
}

// DropHugeNumbers removes keywords with numbers from 2^63 on, because one of them makes OpenAI's and Anthropic's APIs
// reject the whole request. Generators write the range of 64-bit integers as bounds.
func DropHugeNumbers(root *jsonx.Value) (changes []string) {
	huge := func(v *jsonx.Value) bool {
		f, err := strconv.ParseFloat(v.Token, 64)
		return v.Is(jsonx.Number) && (err != nil || math.Abs(f) >= 1<<63)
	}
	return drop(root, "numbers removed that are too large for the API", func(n *jsonx.Value) bool {
		had := len(n.Members)
		n.Members = slices.DeleteFunc(n.Members, func(m jsonx.Member) bool {
			return huge(m.Value) || slices.ContainsFunc(m.Value.Items, huge)
		})
		return len(n.Members) < had
	})
}

// drop removes parts of all schemas in root. With each of them drops is called, which reports whether it has
// removed something; the schemas around it accept more values, too. The change, if there is one, is returned.
func drop(root *jsonx.Value, change string, drops func(*jsonx.Value) bool) []string {
	open := map[*jsonx.Value]bool{}
	schema.Walk(root, func(n *jsonx.Value) {
		if drops(n) {
			open[n] = true
		}
	})
	if len(open) == 0 {
		return nil
	}
	schema.Loosen(root, open)
	return []string{change}
}

// ForClients rewrites a schema for MCP clients: with a type at the root, and with objects in place
// of properties whose schema is true or false, which make some clients reject the whole list of
// tools. It removes a $schema of an older draft, which makes some reject the tool; the schema is in
// draft 2020-12 in any case.
func ForClients(root *jsonx.Value) (changes []string) {
	schema.RemoveDialect(root)
	changed := false
	schema.Walk(root, func(n *jsonx.Value) {
		for _, m := range n.Get("properties").Fields() {
			switch v := m.Value; {
			case v.Is(jsonx.True):
				*v, changed = *jsonx.NewObject(), true
			case v.Is(jsonx.False):
				*v, changed = *jsonx.NewObject(jsonx.NewMember("not", jsonx.NewObject())), true
			}
		}
	})
	changes = TypeRoot(root)
	if changed {
		changes = append(changes, "properties of true or false written as objects")
	}
	return changes
}

// FlattenRoot removes keywords at the root of a schema that make APIs reject the
// whole request: allOf, anyOf, oneOf and the further ones. The properties of their
// schemas are kept, so that a model knows the params; validation checks which of
// them belong together.
func FlattenRoot(root *jsonx.Value, further ...string) (changes []string) {
	f := flattener{refs: schema.NewRefs(root), left: maxFlatWork}
	var found fields
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		if root.Get(keyword).Is(jsonx.Array) {
			found = f.fields(root, maxFlatDepth)
			break
		}
	}
	for _, keyword := range slices.Concat([]string{"allOf", "anyOf", "oneOf"}, further) {
		if root.Remove(keyword) {
			changes = append(changes, keyword+" at the root flattened")
		}
	}
	if len(found.names) > 0 {
		properties := valueOf(root, "properties", jsonx.NewObject())
		have := properties.ByName()
		for _, name := range found.names {
			if have[name] == nil {
				properties.Members = append(properties.Members, jsonx.NewMember(name, found.schemas[name].Clone()))
			}
		}
	}
	if len(found.required) > 0 {
		required := valueOf(root, "required", jsonx.NewArray())
		required.Items = schema.AddNames(required.Items, found.required)
	}
	return changes
}

// valueOf returns the value of a keyword. If it is missing or has another kind than empty, empty becomes
// its value.
func valueOf(n *jsonx.Value, keyword string, empty *jsonx.Value) *jsonx.Value {
	if v := n.Get(keyword); v.Is(empty.Kind) {
		return v
	}
	n.Set(keyword, empty)
	return empty
}

// flattener collects the properties of schemas for the same object.
type flattener struct {
	refs *schema.Refs
	left int // remaining work
}

// Limits on the work, which is about the number of properties visited and bytes
// compared, and on nesting. They are necessary because an untrusted schema can
// require any amount.
const (
	maxFlatWork  = 1 << 20
	maxFlatDepth = 32
)

// fields has the properties of an object that several schemas describe.
type fields struct {
	names    []string // in order
	schemas  map[string]*jsonx.Value
	required []*jsonx.Value
}

func (s *fields) add(name string, v *jsonx.Value) {
	if s.schemas[name] != nil {
		return
	}
	if s.schemas == nil {
		s.schemas = map[string]*jsonx.Value{}
	}
	s.names, s.schemas[name] = append(s.names, name), v
}

// fields returns the properties of a schema and of all schemas that apply, or may
// apply, together with it. The first description of a property takes precedence, so
// the schema itself precedes the others.
func (f *flattener) fields(s *jsonx.Value, depth int) (out fields) {
	s, err := f.refs.Resolve(s)
	if f.left--; err != nil || f.left < 0 || depth == 0 {
		return out
	}
	for _, m := range s.Get("properties").Fields() {
		f.left--
		out.add(m.Name, m.Value)
	}
	out.required = schema.AddNames(nil, s.Get("required").Elements())
	for _, part := range s.Get("allOf").Elements() {
		out.join(f.fields(part, depth-1))
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		out.join(f.alternatives(s.Get(keyword).Elements(), depth))
	}
	return out
}

func (s *fields) join(more fields) {
	for _, name := range more.names {
		s.add(name, more.schemas[name])
	}
	s.required = schema.AddNames(s.required, more.required)
}

// alternatives returns the properties of schemas of which one applies. A property
// may have any value that one of them allows, and is required if all require it.
func (f *flattener) alternatives(list []*jsonx.Value, depth int) (out fields) {
	values := map[string][]*jsonx.Value{}
	for i, branch := range list {
		one := f.fields(branch, depth-1)
		for _, name := range one.names {
			out.add(name, one.schemas[name])
			values[name] = append(values[name], one.schemas[name])
		}
		if i == 0 {
			out.required = one.required
		}
		required := map[string]bool{}
		for _, v := range one.required {
			required[v.Text()] = true
		}
		out.required = slices.DeleteFunc(out.required, func(v *jsonx.Value) bool { return !required[v.Text()] })
	}
	for name, schemas := range values {
		out.schemas[name] = f.either(schemas)
	}
	return out
}

// either returns a schema for the values that at least one of several schemas
// allows. If there are too many, it allows any value.
func (f *flattener) either(list []*jsonx.Value) *jsonx.Value {
	same := map[*jsonx.Value]bool{}
	list = slices.DeleteFunc(list, func(s *jsonx.Value) bool {
		was := same[s]
		same[s] = true
		return was
	})
	if len(list) == 1 {
		return list[0]
	}
	seen := map[string]bool{}
	list = slices.DeleteFunc(list, func(s *jsonx.Value) bool {
		if f.left < 0 {
			return false
		}
		text := jsonx.Canonical(s.AppendTo(nil))
		f.left -= len(text)
		was := seen[text]
		seen[text] = true
		return was
	})
	switch {
	case len(list) == 1:
		return list[0]
	case f.left < 0, slices.ContainsFunc(list, isAnything):
		return jsonx.NewObject()
	}
	if one := oneEnum(list); one != nil {
		return one
	}
	return jsonx.NewObject(jsonx.NewMember("anyOf", jsonx.NewArray(list...)))
}

func isAnything(s *jsonx.Value) bool {
	return !s.Is(jsonx.False) && len(s.Members) == 0
}

// oneEnum combines schemas that only list strings, such as those of the property
// that distinguishes alternatives, because models understand a single enum better.
// It returns nil for other schemas.
func oneEnum(list []*jsonx.Value) *jsonx.Value {
	var values []*jsonx.Value
	for _, s := range list {
		own := texts(s)
		if own == nil {
			return nil
		}
		values = schema.AddNames(values, own)
	}
	return jsonx.NewObject(jsonx.NewMember("type", jsonx.NewString("string")),
		jsonx.NewMember("enum", jsonx.NewArray(values...)))
}

// texts returns the values of a schema that only lists the strings it allows. It
// returns nil for other schemas.
func texts(s *jsonx.Value) (values []*jsonx.Value) {
	for _, m := range s.Members {
		switch {
		case m.Name == "const" && values == nil:
			values = []*jsonx.Value{m.Value}
		case m.Name == "enum" && values == nil:
			values = m.Value.Items
		case m.Name != "type" || !m.Value.IsText("string"):
			return nil
		}
	}
	if slices.ContainsFunc(values, func(v *jsonx.Value) bool { return !v.Is(jsonx.String) }) {
		return nil
	}
	return values
}

// DropDeadRefs removes references without a target in the schema, because an API
// that cannot resolve a reference rejects the whole request. The result accepts
// more values; calls are still checked against the original.
func DropDeadRefs(root *jsonx.Value) (changes []string) {
	refs := schema.NewRefs(root)
	return drop(root, "dangling references dropped", func(n *jsonx.Value) bool {
		ref := n.Get("$ref")
		if ref == nil {
			return false
		}
		if strings.HasPrefix(ref.Text(), "#") { // APIs do not resolve URLs, not even the schema's own
			if _, err := refs.Resolve(n); err == nil {
				return false
			}
		}
		return n.Remove("$ref")
	})
}
