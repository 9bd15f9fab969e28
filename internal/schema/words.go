package schema

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// schema settles a schema and everything below it, and returns the problem that makes it unusable,
// or nil.
func (t *settling) schema(n *jsonx.Value) *problem {
	switch {
	case t.done[n]:
		return nil
	case t.done != nil:
		t.done[n] = true
	}
	switch {
	case n.Is(jsonx.True), n.Is(jsonx.False):
		return nil
	case n.Is(jsonx.Null), isEmptyList(n):
		*n, t.changed = *jsonx.NewObject(), true
		return nil
	case !n.Is(jsonx.Object):
		return &problem{what: "is " + n.Kind.String() + ", not a schema"}
	}
	t.absent(n)
	t.types(n)
	t.values(n)
	t.renamed(n)
	t.required(n)
	t.reference(n)
	t.nullable(n)
	for _, m := range n.Members {
		if p := t.keyword(m.Name, m.Value); p != nil {
			return p.within(m.Name)
		}
	}
	return nil
}

// keyword settles what is below a keyword.
func (t *settling) keyword(name string, v *jsonx.Value) *problem {
	switch {
	case isList(name):
		if !v.Is(jsonx.Array) || len(v.Items) == 0 {
			return &problem{what: "is not a list of schemas"}
		}
		for i, item := range v.Items {
			if IsUnquotedNull(name, item) {
				item.Set("type", jsonx.NewString("null"))
				t.changed = true
			}
			if p := t.schema(item); p != nil {
				return p.within(strconv.Itoa(i))
			}
		}
	case Under(name) == Named:
		if !v.Is(jsonx.Object) {
			return &problem{what: "is " + v.Kind.String() + ", not an object"}
		}
		for _, m := range v.Members {
			if p := t.schema(m.Value); p != nil {
				return p.within(m.Name)
			}
		}
	case Under(name) == Schemas:
		if name != "additionalItems" { // not a keyword of this draft
			return t.schema(v)
		}
	default:
		if what := wrongValue(name, v); what != "" {
			return &problem{what: what}
		}
		if name == "dependentRequired" {
			for _, m := range v.Members {
				t.removeRepeated(m.Value)
			}
		}
	}
	return nil
}

// IsUnquotedNull reports whether a schema under a keyword stands for null because YAML has null
// without quotes: {type: null} as an alternative. In other places that has no meaning.
func IsUnquotedNull(keyword string, s *jsonx.Value) bool {
	return (keyword == "anyOf" || keyword == "oneOf") && len(s.Members) == 1 && s.Get("type").Is(jsonx.Null)
}

// isList reports whether the value of a keyword is a list of schemas.
func isList(keyword string) bool {
	switch keyword {
	case "anyOf", "oneOf", "allOf", "prefixItems":
		return true
	}
	return false
}

func isEmptyList(v *jsonx.Value) bool { return v.Is(jsonx.Array) && len(v.Items) == 0 }

func isNullValue(v *jsonx.Value) bool { return v.Is(jsonx.Null) }

// absent removes keywords without a meaning: those that are null, empty lists where a list must
// have elements or where an object is expected, and annotations of a wrong type. PHP writes an
// empty object as a list.
func (t *settling) absent(n *jsonx.Value) {
	before := len(n.Members)
	n.Members = slices.DeleteFunc(n.Members, func(m jsonx.Member) bool {
		v, kind := m.Value, Under(m.Name)
		switch {
		case v.Is(jsonx.Null):
			return m.Name != "const" && m.Name != "default" &&
				(kind != Other || isAssertion(m.Name) || isAnnotation(m.Name) || isAboutRefs(m.Name))
		case isList(m.Name) && v.Is(jsonx.Array):
			if slices.ContainsFunc(v.Items, isNullValue) {
				v.Items, t.changed = slices.DeleteFunc(v.Items, isNullValue), true
			}
			return len(v.Items) == 0
		case isList(m.Name) && v.Is(jsonx.Object):
			return len(v.Members) == 0
		case isEmptyList(v) && (kind == Named || kind == Schemas):
			*v, t.changed = *jsonx.NewObject(), true
		case isEmptyList(v):
			return m.Name == "enum" || m.Name == "type"
		case isAnnotation(m.Name), isAboutRefs(m.Name):
			return wrongValue(m.Name, v) != ""
		}
		return false
	})
	t.changed = t.changed || len(n.Members) != before
}

// types writes the types as JSON Schema names them, and each type once. It drops the type any of
// draft 3.
func (t *settling) types(n *jsonx.Value) {
	typ := n.Get("type")
	isAny := func(v *jsonx.Value) bool { name, ok := TypeOfWord(v.Text()); return ok && name == "" }
	switch {
	case typ.Is(jsonx.String) && isAny(typ), typ.Is(jsonx.Array) && slices.ContainsFunc(typ.Items, isAny):
		t.changed = n.Remove("type")
	case typ.Is(jsonx.String):
		t.typeWord(typ)
	case typ.Is(jsonx.Array):
		for _, v := range typ.Items {
			t.typeWord(v)
		}
		t.removeRepeated(typ)
	}
}

func (t *settling) typeWord(v *jsonx.Value) {
	if v.Is(jsonx.Null) { // null without quotes in YAML
		*v, t.changed = *jsonx.NewString("null"), true
	}
	if name, ok := TypeOfWord(v.Text()); ok && name != v.Text() {
		*v, t.changed = *jsonx.NewString(name), true
	}
}

// values converts the values that n names to its type: text to a number or a boolean, or the other
// way round. YAML reads values without quotes as numbers, and some generators write all values as
// text. Unconverted, they would make every value invalid.
func (t *settling) values(n *jsonx.Value) {
	if n.Get("type") == nil {
		return
	}
	t.misplaced(n)
	for _, m := range n.Members {
		switch {
		case m.Name == "enum" && m.Value.Is(jsonx.Array):
			for _, v := range m.Value.Items {
				t.retype(n, v)
			}
		case m.Name == "const", m.Name == "default":
			t.retype(n, m.Value)
		}
	}
}

// misplaced moves an enum without any list from the type array to the items, and removes one without null from
// the type null: with them, no value would be valid.
func (t *settling) misplaced(n *jsonx.Value) {
	enum, items := n.Get("enum"), n.Get("items")
	if !enum.Is(jsonx.Array) || slices.ContainsFunc(enum.Items, func(v *jsonx.Value) bool { return IsOfType(n, v) }) {
		return
	}
	if n.Get("type").IsText("null") {
		t.changed = n.Remove("enum")
		return
	}
	if !HasType(n, "array") || items != nil && (!items.Is(jsonx.Object) || items.Get("enum") != nil) {
		return
	}
	if items == nil {
		items = jsonx.NewObject()
		n.Set("items", items)
	}
	items.Set("enum", enum)
	t.changed = n.Remove("enum")
}

// retype converts a value that n names to its type, if it has another one.
func (t *settling) retype(n, v *jsonx.Value) {
	switch {
	case IsOfType(n, v):
	case v.Is(jsonx.String):
		meant, err := jsonx.Parse([]byte(v.Text()), jsonx.Options{})
		if err == nil && isScalar(meant) &&
			(HasType(n, TypeOf(meant)) || meant.Is(jsonx.Number) && HasType(n, "number")) {
			*v, t.changed = *meant, true
		}
	case isScalar(v) && HasType(n, "string"):
		*v, t.changed = *jsonx.NewString(v.Token), true
	}
}

func isScalar(v *jsonx.Value) bool {
	return v.Is(jsonx.Number) || v.Is(jsonx.True) || v.Is(jsonx.False)
}

func (t *settling) removeRepeated(list *jsonx.Value) {
	if len(list.Items) < 2 {
		return
	}
	seen, before := make(map[string]bool, len(list.Items)), len(list.Items)
	list.Items = slices.DeleteFunc(list.Items, func(v *jsonx.Value) bool {
		was := v.Is(jsonx.String) && seen[v.Text()]
		seen[v.Text()] = true
		return was
	})
	t.changed = t.changed || len(list.Items) != before
}

// renamed writes the words of older drafts as in 2020-12.
func (t *settling) renamed(n *jsonx.Value) {
	if n.Get("items").Is(jsonx.Array) && n.Get("prefixItems") == nil {
		n.Rename("items", "prefixItems")
		n.Rename("additionalItems", "items")
		t.changed, t.modern = true, true
	}
	t.exclusive(n, "minimum", "exclusiveMinimum")
	t.exclusive(n, "maximum", "exclusiveMaximum")
	t.dependencies(n)
}

// dependencies writes what depends on a property as two keywords: the names that it requires, and schemas.
func (t *settling) dependencies(n *jsonx.Value) {
	all := n.Get("dependencies")
	if !all.Is(jsonx.Object) {
		return
	}
	n.Remove("dependencies")
	t.changed, t.modern = true, true
	for _, keyword := range []string{"dependentRequired", "dependentSchemas"} {
		of, known := n.Get(keyword), map[string]bool{}
		if of != nil && !of.Is(jsonx.Object) {
			continue // wrong
		}
		members := of.Fields()
		for _, m := range members {
			known[m.Name] = true
		}
		for _, m := range all.Members {
			if isNames(m.Value) == (keyword == "dependentRequired") && !known[m.Name] {
				members = append(members, m)
			}
		}
		if len(members) > 0 {
			n.Set(keyword, jsonx.NewObject(members...))
		}
	}
}

// exclusive writes a limit that a boolean makes exclusive as in draft 4.
func (t *settling) exclusive(n *jsonx.Value, limit, exclusive string) {
	flag := n.Get(exclusive)
	if !flag.Is(jsonx.True) && !flag.Is(jsonx.False) {
		return
	}
	n.Remove(exclusive)
	if flag.Is(jsonx.True) {
		n.Rename(limit, exclusive)
	}
	t.changed, t.modern = true, true
}

// required moves the booleans of draft 3 from the properties of n to its list.
func (t *settling) required(n *jsonx.Value) {
	list := n.Get("required")
	if list.Is(jsonx.True) || list.Is(jsonx.False) { // the schema that has n was first
		t.changed, list = n.Remove("required"), nil
	}
	if list.Is(jsonx.Array) {
		t.removeRepeated(list)
	}
	properties := n.Get("properties")
	if !properties.Is(jsonx.Object) || list != nil && !list.Is(jsonx.Array) {
		return
	}
	var names []*jsonx.Value
	for _, m := range properties.Members {
		if m.Value.Get("required").Is(jsonx.True) {
			names = append(names, jsonx.NewString(m.Name))
		}
	}
	if names != nil {
		n.Set("required", jsonx.NewArray(AddNames(list.Elements(), names)...))
	}
}

// reference removes what an older draft ignores next to a reference, references that lead
// nowhere, and the names that are not needed by any.
func (t *settling) reference(n *jsonx.Value) {
	if n != t.root && t.nested && n.Get("$id").Is(jsonx.String) {
		t.changed = n.Remove("$id")
	}
	l := t.byNode[n]
	if l == nil {
		return
	}
	if t.older {
		n.Members = slices.DeleteFunc(n.Members, func(m jsonx.Member) bool {
			ignored := !isAboutRefs(m.Name) &&
				(Under(m.Name) == Schemas || Under(m.Name) == Named || isAssertion(m.Name))
			t.changed, t.modern = t.changed || ignored, t.modern || ignored
			return ignored
		})
	}
	if l.to == nil {
		t.drop(n, "does not lead to a part of the schema")
	}
}

// nullable replaces OpenAPI's nullable, which Gemini's schemas use too.
func (t *settling) nullable(n *jsonx.Value) {
	flag := n.Get("nullable")
	if !flag.Is(jsonx.True) && !flag.Is(jsonx.False) {
		return
	}
	n.Remove("nullable")
	t.changed = true
	if flag.Is(jsonx.False) {
		return
	}
	outer, inner := &jsonx.Value{Kind: jsonx.Object}, &jsonx.Value{Kind: jsonx.Object}
	for _, m := range n.Members {
		if isAnnotation(m.Name) || m.Name == "default" || m.Name != "$ref" && isAboutRefs(m.Name) {
			outer.Members = append(outer.Members, m)
		} else {
			inner.Members = append(inner.Members, m)
		}
	}
	typ, enum, anyOf := n.Get("type"), n.Get("enum"), n.Get("anyOf")
	switch {
	case len(inner.Members) == 0: // null is allowed
	case typ != nil && !appliesFurther(n):
		if !HasType(n, "null") {
			if !typ.Is(jsonx.Array) {
				typ = jsonx.NewArray(typ)
			}
			n.Set("type", jsonx.NewArray(append(slices.Clone(typ.Items), jsonx.NewString("null"))...))
		}
		addNull(enum)
	case len(inner.Members) == 1 && enum.Is(jsonx.Array):
		addNull(enum)
	case len(inner.Members) == 1 && anyOf.Is(jsonx.Array):
		anyOf.Items = append(slices.Clone(anyOf.Items), OfType("null"))
	default:
		if l := t.byNode[n]; l != nil {
			delete(t.byNode, n)
			l.from, t.byNode[inner] = inner, l
		}
		n.Members = append(outer.Members, jsonx.NewMember("anyOf", jsonx.NewArray(inner, OfType("null"))))
	}
}

func addNull(enum *jsonx.Value) {
	if enum.Is(jsonx.Array) && !HoldsNull(enum.Items) {
		enum.Items = append(slices.Clone(enum.Items), jsonx.NewNull())
	}
}

// appliesFurther reports whether n restricts values by more than keywords for its types.
func appliesFurther(n *jsonx.Value) bool {
	for range inPlace(n) {
		return true
	}
	return n.Get("$ref") != nil || n.Get("const") != nil
}

// problem is what makes a schema unusable.
type problem struct {
	pointer string // to the part with the problem
	what    string
}

func (p *problem) Error() string { return fmt.Sprintf("%q %s", p.pointer, p.what) }

func (p *problem) within(name string) *problem {
	p.pointer = "/" + jsonx.EscapeToken(name) + p.pointer
	return p
}

// isAnnotation reports whether a keyword restricts no values.
func isAnnotation(keyword string) bool {
	switch keyword {
	case "title", "description", "$comment", "format", "examples", "deprecated",
		"readOnly", "writeOnly", "contentEncoding", "contentMediaType":
		return true
	}
	return false
}

// isAssertion reports whether a keyword restricts values and has no schemas.
func isAssertion(keyword string) bool {
	switch keyword {
	case "type", "required", "enum", "const",
		"maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf",
		"maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties",
		"maxContains", "minContains", "pattern", "uniqueItems", "dependentRequired", "nullable":
		return true
	}
	return false
}

// wrongValue describes the mistake in the value of a keyword that contains no schemas. It returns
// "" if there is none or the keyword is unknown.
func wrongValue(keyword string, v *jsonx.Value) string {
	ok, want := true, ""
	switch keyword {
	case "type":
		isType := func(v *jsonx.Value) bool { return v.Is(jsonx.String) && slices.Contains(types, v.Text()) }
		ok, want = isType(v) || v.Is(jsonx.Array) && len(v.Items) > 0 &&
			!slices.ContainsFunc(v.Items, func(v *jsonx.Value) bool { return !isType(v) }),
			"is not a type or a list of types"
	case "required":
		ok, want = isNames(v), "is not a list of names"
	case "dependentRequired":
		ok, want = v.Is(jsonx.Object) &&
			!slices.ContainsFunc(v.Members, func(m jsonx.Member) bool { return !isNames(m.Value) }),
			"is not an object with lists of names"
	case "enum", "examples":
		ok, want = v.Is(jsonx.Array), "is not a list"
	case "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum":
		ok, want = v.Is(jsonx.Number), "is not a number"
	case "multipleOf":
		n, err := strconv.ParseFloat(v.Token, 64)
		ok, want = v.Is(jsonx.Number) && err == nil && n > 0, "is not a positive number"
	case "maxLength", "minLength", "maxItems", "minItems",
		"maxProperties", "minProperties", "maxContains", "minContains":
		n, err := strconv.ParseFloat(v.Token, 64)
		ok, want = v.Is(jsonx.Number) && err == nil && n >= 0 && n == math.Trunc(n), "is not a non-negative integer"
	case "pattern", "format", "title", "description", "$ref", "$schema", "$id",
		"$anchor", "$dynamicAnchor", "$comment", "contentEncoding", "contentMediaType":
		ok, want = v.Is(jsonx.String), "is not a string"
	case "$vocabulary":
		ok, want = v.Is(jsonx.Object), "is not an object"
	case "uniqueItems", "deprecated", "readOnly", "writeOnly":
		ok, want = v.Is(jsonx.True) || v.Is(jsonx.False), "is not a boolean"
	}
	if ok {
		return ""
	}
	return want
}

// isNames reports whether v is a list of strings.
func isNames(v *jsonx.Value) bool {
	return v.Is(jsonx.Array) && !slices.ContainsFunc(v.Items, func(v *jsonx.Value) bool { return !v.Is(jsonx.String) })
}

// CheckObject returns an error if a settled schema allows no objects.
func CheckObject(root *jsonx.Value) error {
	if !root.Is(jsonx.Object) {
		return errors.New("it is not an object")
	}
	target, err := NewRefs(root).Resolve(root)
	if err != nil {
		return err
	}
	for _, n := range []*jsonx.Value{root, target} {
		if typ := n.Get("type"); typ != nil && !HasType(n, "object") {
			return fmt.Errorf("it must have type object, not %.40s", typ.AppendTo(nil))
		}
	}
	return nil
}

// settling is the state of settling one schema.
type settling struct {
	root    *jsonx.Value
	refs    *Refs
	older   bool // up to draft 7
	changed bool
	modern  bool // words of an older draft were replaced
	open    []string
	opened  map[*jsonx.Value]bool // schemas without their reference

	known  map[*jsonx.Value]bool // schemas in which references were looked for
	links  []*link
	byNode map[*jsonx.Value]*link // by the schema with the reference
	done   map[*jsonx.Value]bool  // schemas that were visited, if there are links
	nested bool                   // a schema within the root has an $id

	bases       map[*jsonx.Value]*Refs
	definitions map[string][]*jsonx.Value // by their names, anywhere in the schema
}

type link struct {
	from, to, base *jsonx.Value // to is nil if the reference leads nowhere
}

// collect finds the references in n and below. base is the schema to which pointers in
// references are relative.
func (t *settling) collect(n, base *jsonx.Value) {
	if t.known[n] {
		return
	}
	t.known[n] = true
	if n != t.root && n.Get("$id").Is(jsonx.String) {
		t.nested = true
		if !strings.HasPrefix(n.Get("$id").Text(), "#") {
			base = n
		}
	}
	for _, keyword := range []string{"$recursiveRef", "$dynamicRef"} {
		if n.Get(keyword).Is(jsonx.String) && n.Get("$ref") == nil {
			n.Rename(keyword, "$ref")
			t.changed, t.modern = true, true
		}
	}
	if n.Get("$ref").Is(jsonx.String) {
		l := &link{from: n, base: base}
		if t.byNode == nil {
			t.byNode, t.done = map[*jsonx.Value]*link{}, map[*jsonx.Value]bool{}
		}
		t.links, t.byNode[n] = append(t.links, l), l
	}
	for sub := range Within(n) {
		t.collect(sub, base)
	}
}

// drop removes the reference of n, so that the place accepts anything.
func (t *settling) drop(n *jsonx.Value, why string) {
	t.open = append(t.open,
		fmt.Sprintf("the reference %.80q %s; what is there is not checked", n.Get("$ref").Text(), why))
	n.Remove("$ref")
	if t.opened == nil {
		t.opened = map[*jsonx.Value]bool{}
	}
	t.opened[n] = true
	t.changed = true
}

// inPlace yields the schemas within n that apply to the same value as n.
func inPlace(n *jsonx.Value) iter.Seq[*jsonx.Value] {
	return func(yield func(*jsonx.Value) bool) {
		for _, m := range n.Members {
			switch m.Name {
			case "not", "if", "then", "else":
				if !yield(m.Value) {
					return
				}
			case "anyOf", "oneOf", "allOf":
				for _, item := range m.Value.Items {
					if !yield(item) {
						return
					}
				}
			case "dependentSchemas":
				for _, d := range m.Value.Members {
					if !yield(d.Value) {
						return
					}
				}
			}
		}
	}
}
