package rewrite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
	"github.com/toolreg/toolreg/internal/text"
)

// stricter converts a schema to the subset to which an API can constrain a
// model: objects are closed and keywords outside the subset are removed. In
// OpenAI's subset every property is required, and optional ones accept null
// instead.
type stricter struct {
	refs     *schema.Refs
	grammar  bool // use the subset of Anthropic's models
	dropped  map[string]bool
	closed   bool
	nullable []string // properties that were optional
	other    []string // other changes
	size     size
	found    Grammar
}

// Reasons why a schema cannot be strict.
var (
	errAnyValue = errors.New("a part of it accepts any value")
	errAnyName  = errors.New("an object in it accepts properties of any name")
	errSeveral  = errors.New("a part of it must match several schemas at once")
	errDepends  = errors.New("properties in it depend on others")
)

// Strict makes root an OpenAI strict schema and returns its changes. It returns an
// error if the schema's meaning would be lost or the schema exceeds OpenAI's
// limits; root must not be used then.
func Strict(root *jsonx.Value) (changes []string, err error) {
	s, err := newStricter(root)
	if err == nil {
		err = s.schema(root, 0)
	}
	if err != nil {
		return nil, err
	}
	return s.changes(), s.size.check()
}

func newStricter(root *jsonx.Value) (stricter, error) {
	changed, err := define(root)
	s := stricter{refs: schema.NewRefs(root), dropped: map[string]bool{}}
	if changed {
		s.note("the targets of references copied to $defs")
	}
	return s, err
}

// maxDefined limits the total size of referenced targets in bytes, because one may contain another.
const maxDefined = 1 << 20

// define copies the targets of references that are not definitions of root to its $defs, because strict schemas may
// only refer to those. Generators refer to the first use of a part, such as #/properties/a.
func define(root *jsonx.Value) (changed bool, err error) {
	size := 0
	refs := schema.NewRefs(root)
	defs := root.Get("$defs")
	names := map[*jsonx.Value]string{} // of the copies, by their targets
	var copies []jsonx.Member
	var visit func(n *jsonx.Value)
	visit = func(n *jsonx.Value) {
		if err != nil {
			return
		}
		if ref := n.Get("$ref"); ref.Is(jsonx.String) && !isDefinition(ref.Text()) {
			if target := refs.Lookup(ref.Text()); target.Is(jsonx.Object) {
				name, known := names[target]
				if !known {
					name = fmt.Sprintf("ref%d", len(names)+1)
					for defs.Get(name) != nil {
						name += "_"
					}
					names[target] = name
					if size += len(target.AppendTo(nil)); size > maxDefined {
						err = errors.New("the targets of its references are too large to be copied")
						return
					}
					one := target.Clone()
					copies = append(copies, jsonx.NewMember(name, one))
					schema.Walk(one, visit)
				}
				n.Set("$ref", jsonx.NewString("#/$defs/"+name))
			}
		}
	}
	if schema.Walk(root, visit); err != nil || len(copies) == 0 {
		return false, err
	}
	if defs != nil {
		copies = append(slices.Clone(defs.Members), copies...)
	}
	root.Set("$defs", jsonx.NewObject(copies...))
	return true, nil
}

// isDefinition reports whether a reference leads to the root or one of its definitions.
func isDefinition(ref string) bool {
	for _, keyword := range []string{"#/$defs/", "#/definitions/"} {
		if name, ok := strings.CutPrefix(ref, keyword); ok {
			return !strings.Contains(name, "/")
		}
	}
	return ref == "#"
}

// Grammar is the contribution of a schema to the grammar that Anthropic compiles
// for a request with strict tools.
type Grammar struct {
	Optional int // properties that are not required
	Unions   int // values of several types
}

// Add returns the sum of two contributions.
func (g Grammar) Add(other Grammar) Grammar {
	return Grammar{g.Optional + other.Optional, g.Unions + other.Unions}
}

// StrictGrammar makes root a strict schema for Anthropic's models, like [Strict].
func StrictGrammar(root *jsonx.Value) (changes []string, cost Grammar, err error) {
	s, err := newStricter(root)
	s.grammar = true
	if err == nil {
		err = s.schema(root, 0)
	}
	if err != nil {
		return nil, Grammar{}, err
	}
	if s.recursive(root, map[*jsonx.Value]bool{}) {
		return nil, Grammar{}, errors.New("it contains itself")
	}
	return s.changes(), s.found, nil
}

// recursive reports whether a schema is recursive. state has the visited schemas,
// with true while the visit is in progress.
func (s *stricter) recursive(n *jsonx.Value, state map[*jsonx.Value]bool) bool {
	if within, seen := state[n]; seen {
		return within
	}
	state[n] = true
	if target, err := s.refs.Resolve(n); err != nil || target != n && s.recursive(target, state) {
		return true
	}
	for sub := range schema.Within(n) {
		if s.recursive(sub, state) {
			return true
		}
	}
	state[n] = false
	return false
}

// maxNamed is the maximum number of properties that a change lists.
const maxNamed = 10

func (s *stricter) changes() []string {
	out := slices.Clone(s.other)
	if s.closed {
		out = append(out, "objects closed to additional properties")
	}
	if len(s.nullable) > 0 {
		names := strings.Join(s.nullable[:min(len(s.nullable), maxNamed)], ", ")
		if more := len(s.nullable) - maxNamed; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, "optional properties made nullable: "+names)
	}
	if len(s.dropped) > 0 {
		out = append(out, "dropped: "+strings.Join(slices.Sorted(maps.Keys(s.dropped)), ", "))
	}
	return out
}

func (s *stricter) schema(n *jsonx.Value, depth int) error {
	if !n.Is(jsonx.Object) {
		return errAnyValue
	}
	if depth > maxStrictDepth {
		return fmt.Errorf("it is nested deeper than %d", maxStrictDepth)
	}
	if n.Get("$ref") == nil {
		if whole, err := s.refs.Resolve(n); err == nil && whole != n {
			return errDepends // they would be lost
		}
	}
	if err := s.prune(n); err != nil {
		return err
	}
	kept, err := s.definitions(n)
	if err != nil {
		return err
	}
	if n.Get("$ref") != nil {
		if n.Get("properties") != nil || n.Get("anyOf") != nil || n.Get("enum") != nil {
			return errSeveral // keywords next to a reference also apply
		}
		kept = append(kept, "$ref")
		if !s.grammar && len(kept) == 1 {
			kept = append(kept, "description")
		}
		s.keepOnly(n, kept)
		_, err := s.refs.Resolve(n)
		if about := n.Get("description"); about != nil {
			ref := jsonx.NewObject(jsonx.NewMember("$ref", n.Get("$ref")))
			n.Members = []jsonx.Member{jsonx.NewMember("anyOf", jsonx.NewArray(ref)), jsonx.NewMember("description", about)}
			s.note("references with a description put in anyOf")
		}
		return err
	}
	if list := n.Get("anyOf"); list != nil {
		if n.Get("properties") != nil { // closed objects with different properties cannot be combined
			return errSeveral
		}
		s.found.Unions++
		if err := s.branches(list.Items, depth); err != nil || n.Get("type") == nil {
			return err
		}
	}
	return s.typed(n, depth)
}

func (s *stricter) branches(list []*jsonx.Value, depth int) error {
	for _, branch := range list {
		if err := s.schema(branch, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// typed rewrites the keywords that apply to the types of a schema.
func (s *stricter) typed(n *jsonx.Value, depth int) error {
	if n.Get("type").Is(jsonx.Array) {
		s.found.Unions++
	}
	if schema.HasType(n, "array") {
		items := n.Get("items")
		if items == nil {
			return errors.New("an array in it does not declare its items")
		}
		if err := s.schema(items, depth+1); err != nil {
			return err
		}
	}
	if schema.HasType(n, "object") {
		return s.object(n, depth)
	}
	return s.scalar(n)
}

// prune rewrites keywords that have a counterpart in the subset and removes the
// others.
func (s *stricter) prune(n *jsonx.Value) error {
	if all := n.Get("allOf"); all != nil {
		if len(all.Items) != 1 || !mergeable(n, all.Items[0]) {
			return errSeveral
		}
		n.Remove("allOf")
		n.Members = append(n.Members, all.Items[0].Members...)
		s.note("allOf of one schema merged")
	}
	if n.Get("oneOf") != nil && n.Get("anyOf") == nil {
		n.Rename("oneOf", "anyOf")
		s.note("oneOf converted to anyOf")
	}
	if n.Get("type") == nil && n.Get("properties") != nil {
		n.Prepend("type", jsonx.NewString("object"))
	}
	if err := s.ofType(n); err != nil {
		return err
	}
	return s.drop(n)
}

// ofType removes the values of an enum that are not of the schema's type, for which OpenAI rejects the
// request.
func (s *stricter) ofType(n *jsonx.Value) error {
	typ, enum := n.Get("type"), n.Get("enum")
	if typ == nil || enum == nil {
		return nil
	}
	kept := slices.DeleteFunc(slices.Clone(enum.Items), func(v *jsonx.Value) bool { return !schema.IsOfType(n, v) })
	switch {
	case len(kept) == 0:
		return errors.New("an enum in it has no value of its type")
	case len(kept) < len(enum.Items):
		n.Set("enum", jsonx.NewArray(kept...))
		s.note("values of another type removed from an enum")
	}
	return nil
}

// drop removes the keywords that are not in the subset.
func (s *stricter) drop(n *jsonx.Value) error {
	kept := make([]jsonx.Member, 0, len(n.Members))
	for _, m := range n.Members {
		switch {
		case m.Name == "patternProperties" || m.Name == "prefixItems":
			return errors.New("a part of it uses " + m.Name)
		case !s.keeps(m):
			s.dropped[m.Name] = true
		default:
			kept = append(kept, m)
		}
	}
	n.Members = kept
	return nil
}

// definitions rewrites the schemas that references refer to and returns the
// keywords that contain them.
func (s *stricter) definitions(n *jsonx.Value) (kept []string, err error) {
	for _, keyword := range []string{"$defs", "definitions"} {
		defs := n.Get(keyword)
		if defs == nil {
			continue
		}
		kept = append(kept, keyword)
		for _, m := range defs.Members {
			s.size.name(m.Name)
			if err := s.schema(m.Value, 0); err != nil {
				return nil, err
			}
		}
	}
	return kept, nil
}

// keepOnly removes all keywords except the given ones. A reference must be the only
// keyword.
func (s *stricter) keepOnly(n *jsonx.Value, names []string) {
	n.Members = slices.DeleteFunc(n.Members, func(m jsonx.Member) bool {
		if slices.Contains(names, m.Name) {
			return false
		}
		s.dropped[m.Name+" next to $ref"] = true
		return true
	})
}

func (s *stricter) note(change string) {
	s.other = text.AppendNew(s.other, change)
}

// OpenAI's limits on strict schemas (guide to structured outputs, "supported
// schemas").
const (
	maxStrictDepth      = 10
	maxStrictProperties = 5000
	maxStrictEnum       = 1000
	maxStrictText       = 120_000 // characters of names and values
	manyStrictEnum      = 250     // if one enum has more values,
	maxStrictEnumText   = 15_000  // its values may have only so many characters
)

// size is the size of a schema, as far as OpenAI limits it.
type size struct {
	properties int
	values     int // number of enum values
	text       int // characters of names and values
}

func (s *size) name(text string) { s.text += utf8.RuneCountInString(text) }

// enum adds the values of an enum. It returns an error if the enum exceeds its own
// limit.
func (s *size) enum(values []*jsonx.Value) error {
	text := size{}
	for _, v := range values {
		text.name(v.Text())
	}
	s.values += len(values)
	s.text += text.text
	if len(values) > manyStrictEnum && text.text > maxStrictEnumText {
		return fmt.Errorf("an enum of %d values has %d characters, but the limit is %d",
			len(values), text.text, maxStrictEnumText)
	}
	return nil
}

// check returns an error if a limit is exceeded.
func (s *size) check() error {
	switch {
	case s.properties > maxStrictProperties:
		return fmt.Errorf("it has %d properties, but the limit is %d", s.properties, maxStrictProperties)
	case s.values > maxStrictEnum:
		return fmt.Errorf("it has %d enum values, but the limit is %d", s.values, maxStrictEnum)
	case s.text > maxStrictText:
		return fmt.Errorf("its names and values have %d characters, but the limit is %d", s.text, maxStrictText)
	}
	return nil
}

// keeps reports whether a keyword with this value is in the subset. The subset of
// Anthropic's models has no limits on values (documentation of structured outputs,
// "JSON Schema limitations"), and supports so few patterns that all are removed.
func (s *stricter) keeps(m jsonx.Member) bool {
	switch m.Name {
	case "format":
		return strictFormat(m.Value.Text()) || s.grammar && m.Value.Text() == "uri"
	case "default":
		return s.grammar
	case "pattern", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "minItems", "maxItems":
		return !s.grammar
	case "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const",
		"$ref", "$defs", "definitions", "title", "description":
		return true
	}
	return false
}

// strictFormat reports whether a string format is in OpenAI's subset.
func strictFormat(name string) bool {
	switch name {
	case "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid":
		return true
	}
	return false
}

// object closes an object and makes all its properties required.
func (s *stricter) object(n *jsonx.Value, depth int) error {
	properties, further := n.Get("properties"), n.Get("additionalProperties")
	named := len(properties.Fields()) > 0
	switch {
	case further.Is(jsonx.Object) && len(further.Members) > 0,
		!named && further != nil && !further.Is(jsonx.False),
		!named && further == nil && n != s.refs.Root():
		return errAnyName
	}
	s.closed = s.closed || !further.Is(jsonx.False)
	n.Set("additionalProperties", jsonx.NewBool(false))
	if !named {
		n.Set("properties", jsonx.NewObject())
		n.Set("required", jsonx.NewArray())
		return nil
	}
	return s.properties(n, properties, depth)
}

// properties rewrites the properties of an object and makes them required.
func (s *stricter) properties(n, properties *jsonx.Value, depth int) error {
	required := schema.Required(n)
	names := make([]*jsonx.Value, 0, len(properties.Members))
	for i := range properties.Members {
		m := &properties.Members[i]
		if err := s.schema(m.Value, depth+1); err != nil {
			return err
		}
		switch {
		case required[m.Name]:
		case s.grammar:
			s.found.Optional++
			continue
		default:
			m.Value = nullable(m.Value)
			s.nullable = append(s.nullable, m.Name)
		}
		names = append(names, jsonx.NewString(m.Name))
		s.size.name(m.Name)
	}
	s.size.properties += len(names)
	n.Set("required", jsonx.NewArray(names...))
	return nil
}

// scalar ensures that a value has a type.
func (s *stricter) scalar(n *jsonx.Value) error {
	values, constant := n.Get("enum"), n.Get("const")
	if s.grammar && (isCompound(constant) || values != nil && slices.ContainsFunc(values.Items, isCompound)) {
		return errors.New("an enum or const in it has objects or arrays")
	}
	if values != nil {
		if err := s.size.enum(values.Items); err != nil {
			return err
		}
	}
	s.size.name(constant.Text())
	if n.Get("type") != nil {
		return nil
	}
	if values == nil && constant != nil {
		values = jsonx.NewArray(constant)
	}
	if values == nil || len(values.Items) == 0 {
		return errAnyValue
	}
	n.Prepend("type", typesOf(values.Items))
	s.note("type added next to enum")
	return nil
}

func isCompound(v *jsonx.Value) bool { return v.Is(jsonx.Object) || v.Is(jsonx.Array) }

// typesOf returns the types of values as a value of the keyword type.
func typesOf(values []*jsonx.Value) *jsonx.Value {
	var types []*jsonx.Value
	for _, v := range values {
		name := schema.TypeOf(v)
		if !slices.ContainsFunc(types, func(t *jsonx.Value) bool { return t.IsText(name) }) {
			types = append(types, jsonx.NewString(name))
		}
	}
	if len(types) == 1 {
		return types[0]
	}
	return jsonx.NewArray(types...)
}

// nullable returns a schema that also accepts null.
func nullable(n *jsonx.Value) *jsonx.Value {
	typ, anyOf := n.Get("type"), n.Get("anyOf")
	switch {
	case anyOf != nil && typ == nil:
		if !slices.ContainsFunc(anyOf.Items, func(b *jsonx.Value) bool { return schema.HasType(b, "null") }) {
			n.Set("anyOf", withItem(anyOf, schema.OfType("null")))
		}
		return n
	case typ == nil || anyOf != nil || n.Get("const") != nil:
		return jsonx.NewObject(jsonx.NewMember("anyOf", jsonx.NewArray(n, schema.OfType("null"))))
	case schema.HasType(n, "null"):
	case typ.Is(jsonx.Array):
		n.Set("type", withItem(typ, jsonx.NewString("null")))
	default:
		n.Set("type", jsonx.NewArray(typ, jsonx.NewString("null")))
	}
	if enum := n.Get("enum"); enum != nil && !schema.HoldsNull(enum.Items) {
		n.Set("enum", withItem(enum, jsonx.NewNull()))
	}
	return n
}

func withItem(list, item *jsonx.Value) *jsonx.Value {
	return jsonx.NewArray(append(slices.Clone(list.Items), item)...)
}

// mergeable reports whether the only branch of an allOf can be merged into its
// parent without contradictions.
func mergeable(n, branch *jsonx.Value) bool {
	if !branch.Is(jsonx.Object) {
		return false
	}
	have := n.ByName()
	return !slices.ContainsFunc(branch.Members, func(m jsonx.Member) bool { return have[m.Name] != nil })
}
