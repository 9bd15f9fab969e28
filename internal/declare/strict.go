package declare

import (
	"fmt"
	"slices"
	"strings"
)

// stricter turns a schema into the subset that OpenAI can hold a model to:
// objects are closed, every property is required, what was optional takes null
// instead, and keywords outside the subset go. A schema whose meaning would be
// lost, such as an object with keys of any name, is refused.
type stricter struct {
	refs       *resolver
	dropped    map[string]bool
	closed     bool
	nullable   []string
	other      []string
	properties int
	enums      int
	text       int // characters of names and values
}

// apply rewrites root in place and returns why it cannot, "" when it did.
func (s *stricter) apply(root *node) (why string) {
	s.refs, s.dropped = newResolver(root), map[string]bool{}
	if why := s.schema(root, 0, true); why != "" {
		return why
	}
	return s.overLimit()
}

// maxNamed is how many properties a diagnostic names.
const maxNamed = 10

// changes tells what apply did.
func (s *stricter) changes() []string {
	out := slices.Clone(s.other)
	if s.closed {
		out = append(out, "objects closed to further properties")
	}
	if len(s.nullable) > 0 {
		names := strings.Join(s.nullable[:min(len(s.nullable), maxNamed)], ", ")
		if more := len(s.nullable) - maxNamed; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, "optional made nullable: "+names)
	}
	if len(s.dropped) > 0 {
		words := make([]string, 0, len(s.dropped))
		for w := range s.dropped {
			words = append(words, w)
		}
		slices.Sort(words)
		out = append(out, "dropped: "+strings.Join(words, ", "))
	}
	return out
}

func (s *stricter) schema(n *node, depth int, root bool) (why string) {
	if n.kind != kindObject {
		return "a part of it takes any value"
	}
	if depth > maxStrictDepth {
		return fmt.Sprintf("it is nested deeper than %d", maxStrictDepth)
	}
	if why := s.prune(n); why != "" {
		return why
	}
	if defs, why := s.definitions(n); why != "" {
		return why
	} else if n.get("$ref") != nil {
		if _, err := s.refs.resolve(n); err != nil {
			return err.Error()
		}
		s.only(n, append(defs, "$ref"))
		return ""
	}
	if list := n.get("anyOf"); list != nil {
		for _, branch := range list.items {
			if why := s.schema(branch, depth+1, false); why != "" {
				return why
			}
		}
		if n.get("type") == nil {
			return ""
		}
	}
	if hasType(n, "array") {
		items := n.get("items")
		if items == nil {
			return "an array of it does not say what it holds"
		}
		if why := s.schema(items, depth+1, false); why != "" {
			return why
		}
	}
	if hasType(n, "object") {
		return s.object(n, depth, root)
	}
	return s.scalar(n)
}

// prune rewrites what has another word in the subset and drops what has none.
func (s *stricter) prune(n *node) (why string) {
	if all := n.get("allOf"); all != nil {
		if len(all.items) != 1 || !mergeable(n, all.items[0]) {
			return "a part of it has to match several schemas at once"
		}
		n.remove("allOf")
		n.members = append(n.members, all.items[0].members...)
		s.note("allOf of one schema merged")
	}
	if n.get("oneOf") != nil && n.get("anyOf") == nil {
		n.rename("oneOf", "anyOf")
		s.note("oneOf turned into anyOf")
	}
	if n.get("type") == nil && n.get("properties") != nil {
		n.prepend("type", newString("object"))
	}
	kept := make([]member, 0, len(n.members))
	for _, m := range n.members {
		switch {
		case m.name == "patternProperties" || m.name == "prefixItems":
			return "a part of it uses " + m.name
		case m.name == "format" && !strictFormat(m.value.text()), !strictKeyword(m.name):
			s.dropped[m.name] = true
		default:
			kept = append(kept, m)
		}
	}
	n.members = kept
	return ""
}

func (s *stricter) definitions(n *node) (kept []string, why string) {
	for _, keyword := range []string{"$defs", "definitions"} {
		defs := n.get(keyword)
		if defs == nil {
			continue
		}
		kept = append(kept, keyword)
		for _, m := range defs.members {
			s.text += characters(m.name)
			if why := s.schema(m.value, 0, false); why != "" {
				return nil, why
			}
		}
	}
	return kept, ""
}

// only drops every keyword but the named ones; a reference stands alone.
func (s *stricter) only(n *node, names []string) {
	n.members = slices.DeleteFunc(n.members, func(m member) bool {
		if slices.Contains(names, m.name) {
			return false
		}
		s.dropped[m.name+" beside $ref"] = true
		return true
	})
}

func (s *stricter) object(n *node, depth int, root bool) (why string) {
	properties, further := n.get("properties"), n.get("additionalProperties")
	named := properties != nil && properties.kind == kindObject && len(properties.members) > 0
	switch {
	case further != nil && further.kind == kindObject && len(further.members) > 0,
		!named && further != nil && further.kind != kindFalse,
		!named && further == nil && !root:
		return "an object of it takes properties of any name"
	}
	s.closed = s.closed || further == nil || further.kind != kindFalse
	n.set("additionalProperties", newFalse())
	if !named {
		n.set("properties", newObject())
		n.set("required", newArray())
		return ""
	}
	required := namesIn(n.get("required"))
	names := make([]*node, 0, len(properties.members))
	for i := range properties.members {
		m := &properties.members[i]
		if why := s.schema(m.value, depth+1, false); why != "" {
			return why
		}
		if !required[m.name] {
			m.value = nullable(m.value)
			s.nullable = append(s.nullable, m.name)
		}
		names = append(names, &node{kind: kindString, token: m.token})
		s.text += characters(m.name)
	}
	s.properties += len(names)
	n.set("required", newArray(names...))
	return ""
}

// scalar makes sure that a value says of what type it is.
func (s *stricter) scalar(n *node) (why string) {
	values := n.get("enum")
	if values != nil {
		if why := s.enum(values.items); why != "" {
			return why
		}
	}
	s.text += characters(n.get("const").text())
	if n.get("type") != nil {
		return ""
	}
	if c := n.get("const"); values == nil && c != nil {
		values = newArray(c)
	}
	if values == nil || len(values.items) == 0 {
		return "a part of it takes any value"
	}
	var types []*node
	for _, v := range values.items {
		t := typeName(v)
		if !slices.ContainsFunc(types, func(o *node) bool { return o.is(t) }) {
			types = append(types, newString(t))
		}
	}
	if len(types) == 1 {
		n.prepend("type", types[0])
	} else {
		n.prepend("type", newArray(types...))
	}
	s.note("type added beside enum")
	return ""
}

func (s *stricter) note(change string) {
	if !slices.Contains(s.other, change) {
		s.other = append(s.other, change)
	}
}

// nullable returns a schema that also takes null.
func nullable(n *node) *node {
	typ, anyOf := n.get("type"), n.get("anyOf")
	switch {
	case anyOf != nil && typ == nil:
		if !slices.ContainsFunc(anyOf.items, func(b *node) bool { return hasType(b, "null") }) {
			n.set("anyOf", newArray(append(slices.Clone(anyOf.items), nullType())...))
		}
		return n
	case typ == nil || anyOf != nil || n.get("const") != nil:
		return newObject(newMember("anyOf", newArray(n, nullType())))
	case hasType(n, "null"):
	case typ.kind == kindArray:
		n.set("type", newArray(append(slices.Clone(typ.items), newString("null"))...))
	default:
		n.set("type", newArray(typ, newString("null")))
	}
	if enum := n.get("enum"); enum != nil && !holdsNull(enum.items) {
		n.set("enum", newArray(append(slices.Clone(enum.items), newNull())...))
	}
	return n
}

func nullType() *node { return newObject(newMember("type", newString("null"))) }

// mergeable reports whether the only branch of an allOf can take its parent's
// place without the two saying different things.
func mergeable(n, branch *node) bool {
	if branch.kind != kindObject {
		return false
	}
	have := byName(n)
	for _, m := range branch.members {
		if have[m.name] != nil {
			return false
		}
	}
	return true
}

func typeName(v *node) string {
	switch v.kind {
	case kindObject:
		return "object"
	case kindArray:
		return "array"
	case kindString:
		return "string"
	case kindNumber:
		if strings.ContainsAny(v.token, ".eE") {
			return "number"
		}
		return "integer"
	case kindNull:
		return "null"
	}
	return "boolean"
}
