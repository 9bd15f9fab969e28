package gemini

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// properties rewrites the properties of an object. It removes optional properties
// that cannot be expressed.
func (f *Fitter) properties(n, out *jsonx.Value, depth int) error {
	properties := n.Get("properties")
	if !properties.Is(jsonx.Object) || len(properties.Members) == 0 {
		return errFree
	}
	if allowsMore(n) {
		f.changed("additional properties of any name not declared")
	}
	required := schema.Required(n)
	fitted := f.object(len(properties.Members))
	needed := jsonx.NewArray()
	for i := range properties.Members {
		m := &properties.Members[i]
		value, err := f.property(m, required[m.Name], depth)
		if err != nil {
			return err
		}
		if value == nil {
			continue
		}
		fitted.Members = append(fitted.Members, jsonx.NewMember(m.Name, value))
		if required[m.Name] {
			needed.Items = append(needed.Items, jsonx.NewString(m.Name))
		}
	}
	if len(fitted.Members) == 0 {
		return errFree
	}
	out.Set("properties", fitted)
	if len(needed.Items) > 0 {
		out.Set("required", needed)
	}
	return nil
}

// property rewrites one property. It returns nil if the property has to be removed.
func (f *Fitter) property(m *jsonx.Member, required bool, depth int) (*jsonx.Value, error) {
	value, err := f.schema(m.Value, depth+1)
	switch {
	case errors.Is(err, errFree) && required:
		return nil, fmt.Errorf("its property %.80q, which is required, is %w", m.Name, err)
	case errors.Is(err, errFree):
		f.lose(fmt.Sprintf("the property %.80q, %v", m.Name, err))
		return nil, nil
	case errors.Is(err, errNone):
		return nil, nil
	}
	return value, err
}

// array rewrites the items of a list.
func (f *Fitter) array(n, out *jsonx.Value, depth int) error {
	fitted, err := f.schema(f.item(n, out), depth+1)
	switch {
	case errors.Is(err, errFree):
		return errFree
	case errors.Is(err, errNone): // no item is valid, so only an empty list is
		fitted = f.anything(jsonx.NewObject())
	case err != nil:
		return err
	}
	out.Set("items", fitted)
	return nil
}

// item returns the schema for the items of a list. The schemas of a tuple become
// one schema. If a tuple allows no further items, its length is set in out.
func (f *Fitter) item(n, out *jsonx.Value) *jsonx.Value {
	rest, places := n.Get("items"), n.Get("prefixItems")
	switch {
	case places == nil && rest == nil:
		return jsonx.NewObject()
	case places == nil:
		return rest
	}
	f.changed("the items of a tuple written as one schema")
	list := slices.Clone(places.Items)
	if rest.Is(jsonx.Object) {
		list = append(list, rest)
	} else if rest.Is(jsonx.False) && out.Get("maxItems") == nil {
		out.Set("maxItems", &jsonx.Value{Kind: jsonx.Number, Token: strconv.Itoa(len(list))})
	}
	return jsonx.NewObject(jsonx.NewMember("anyOf", jsonx.NewArray(list...)))
}

// copyTexts copies the descriptive keywords.
func copyTexts(n, out *jsonx.Value) {
	for i := range n.Members {
		if m := &n.Members[i]; (m.Name == "title" || m.Name == "description") && m.Value.Is(jsonx.String) {
			out.Members = append(out.Members, *m)
		}
	}
}

// limits copies the constraints that the type Schema also has, and reports the ones
// that are dropped.
func (f *Fitter) limits(n, out *jsonx.Value) {
	typ := strings.ToLower(out.Get("type").Text())
	for i := range n.Members {
		switch m := &n.Members[i]; m.Name {
		case "exclusiveMinimum", "exclusiveMaximum":
			f.exclusive(n, out, m, typ)
		case "examples":
			if m.Value.Is(jsonx.Array) && len(m.Value.Items) > 0 && n.Get("example") == nil {
				out.Set("example", m.Value.Items[0])
			}
		case "additionalProperties":
			if m.Value.Is(jsonx.False) {
				f.changed("additionalProperties dropped")
			}
		case "format":
			if takesFormat(typ, m.Value.Text()) {
				out.Members = append(out.Members, *m)
			} else {
				f.changed(fmt.Sprintf("format %.40q dropped", m.Value.Text()))
			}
		case "pattern", "minimum", "maximum", "default", "example", "propertyOrdering",
			"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties":
			if takesValue(m) && appliesTo(m.Name, typ) {
				out.Members = append(out.Members, *m)
			}
		default:
			if !isKeyword(m.Name) && !isRewritten(m.Name) {
				f.changed(m.Name + " dropped")
			}
		}
	}
}

// exclusive rewrites an exclusive limit as an inclusive one; for integers, as the
// next value.
func (f *Fitter) exclusive(n, out *jsonx.Value, m *jsonx.Member, typ string) {
	limit, step := "minimum", int64(1)
	if m.Name == "exclusiveMaximum" {
		limit, step = "maximum", -1
	}
	if !m.Value.Is(jsonx.Number) || n.Get(limit) != nil || !appliesTo(limit, typ) {
		return
	}
	f.changed(m.Name + " written as " + limit)
	value := m.Value
	if i, err := strconv.ParseInt(value.Token, 10, 52); err == nil && typ == "integer" {
		value = &jsonx.Value{Kind: jsonx.Number, Token: strconv.FormatInt(i+step, 10)}
	}
	out.Set(limit, value)
}

// isRewritten reports whether the fitter handles a keyword elsewhere.
func isRewritten(name string) bool {
	switch name {
	case "$ref", "$defs", "definitions", "const", "oneOf", "allOf",
		"prefixItems", "additionalItems", "patternProperties":
		return true
	}
	return false
}

// branches returns the alternatives of a schema, or nil if it has none.
func branches(n *jsonx.Value) []*jsonx.Value {
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list := n.Get(keyword).Elements(); len(list) > 0 {
			return list
		}
	}
	return nil
}

// isUnion reports whether the alternatives describe the value. If n itself describes
// it and the alternatives only add conditions, such as which properties belong
// together, they are left to validation.
func isUnion(n *jsonx.Value, list []*jsonx.Value) bool {
	if n.Get("type") == nil {
		return true
	}
	return slices.ContainsFunc(list, func(b *jsonx.Value) bool {
		return b.Get("$ref") != nil || b.Get("type") != nil || b.Get("properties") != nil || b.Get("items") != nil ||
			b.Get("enum") != nil || b.Get("const") != nil || branches(b) != nil
	})
}

// union rewrites alternatives. The API requires anyOf to be the only keyword,
// so the other keywords of n are added to each alternative.
func (f *Fitter) union(n *jsonx.Value, list []*jsonx.Value, depth int) (*jsonx.Value, error) {
	if n.Get("oneOf") != nil {
		f.changed("oneOf converted to anyOf")
	}
	fitted, null, err := f.alternatives(n, list, depth)
	switch {
	case err != nil:
		return nil, err
	case len(fitted) == 0 && null:
		return schema.OfType("null"), nil
	case len(fitted) == 0:
		return nil, errFree
	}
	if null || n.Get("nullable").Is(jsonx.True) {
		for _, b := range fitted {
			b.Set("nullable", jsonx.NewBool(true))
		}
	}
	fallback := n.Get("default")
	if len(fitted) == 1 {
		if fallback != nil && !fallback.Is(jsonx.Null) && fitted[0].Get("default") == nil {
			fitted[0].Set("default", fallback)
		}
		return fitted[0], nil
	}
	if fallback != nil {
		f.changed("default next to anyOf dropped")
	}
	return jsonx.NewObject(jsonx.NewMember("anyOf", jsonx.NewArray(fitted...))), nil
}

// alternatives rewrites a list of schemas. null is set if one of them accepts only
// null.
func (f *Fitter) alternatives(n *jsonx.Value, list []*jsonx.Value,
	depth int) (fitted []*jsonx.Value, null bool, err error) {
	for _, branch := range list {
		b, err := f.schema(f.withRest(branch, n), depth+1)
		switch {
		case errors.Is(err, errFree):
			f.lose(err.Error())
		case errors.Is(err, errNone):
		case err != nil:
			return nil, false, err
		case schema.HasType(b, "null"):
			f.changed("null as a type written as nullable")
			null = true
		case b.Get("anyOf") != nil:
			fitted = append(fitted, b.Get("anyOf").Items...)
		default:
			fitted = append(fitted, b)
		}
	}
	return distinct(fitted), null, nil
}

func distinct(list []*jsonx.Value) []*jsonx.Value {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(n *jsonx.Value) bool {
		text := string(n.AppendTo(nil))
		was := seen[text]
		seen[text] = true
		return was
	})
}

// withRest returns a branch with the keywords next to the alternatives.
func (f *Fitter) withRest(branch, n *jsonx.Value) *jsonx.Value {
	if !branch.Is(jsonx.Object) {
		return branch
	}
	f.work += len(branch.Members) + len(n.Members)
	merged := jsonx.NewObject(slices.Clone(branch.Members)...)
	have := merged.ByName()
	for _, m := range n.Members {
		switch {
		case ofUnion(m.Name), m.Name == "type" && isConstrained(have):
		case have[m.Name] == nil:
			merged.Members = append(merged.Members, m)
		case m.Name == "properties", m.Name == "required":
			f.work += len(m.Value.Members) + len(m.Value.Items)
			schema.Add(merged, m)
		}
	}
	return merged
}

// ofUnion reports whether a keyword next to alternatives applies to the union and
// not to each alternative.
func ofUnion(name string) bool {
	switch name {
	case "anyOf", "oneOf", "default", "nullable", "$defs", "definitions":
		return true
	}
	return false
}

func isConstrained(have map[string]*jsonx.Value) bool {
	return have["$ref"] != nil || have["anyOf"] != nil ||
		have["oneOf"] != nil || have["enum"] != nil || have["const"] != nil
}

// merged returns n with the schemas of allOf merged into it. The result is
// incomplete if the limit on work is exceeded.
func (f *Fitter) merged(n *jsonx.Value) *jsonx.Value {
	if whole, err := f.refs.Resolve(n); err == nil && whole != n {
		f.changed("properties of conditions declared")
		n = whole
	}
	if n.Get("allOf") == nil {
		return n
	}
	n = jsonx.NewObject(slices.Clone(n.Members)...)
	for range maxDepth {
		all := n.Get("allOf")
		if all == nil {
			break
		}
		n.Remove("allOf")
		f.changed("allOf merged")
		for _, branch := range all.Items {
			if f.work++; f.work > maxWork {
				return n
			}
			target, err := f.refs.Resolve(branch)
			if err == nil && target.Is(jsonx.Object) && !slices.Contains(f.inside, target) {
				f.merge(n, target)
			}
		}
	}
	return n
}

// merge adds the constraints of another schema to n.
func (f *Fitter) merge(n, more *jsonx.Value) {
	f.work += len(n.Members) + len(more.Members)
	have := n.ByName()
	for _, m := range more.Members {
		switch old := have[m.Name]; {
		case old == nil:
			n.Members = append(n.Members, m)
		case m.Name == "properties", m.Name == "required", m.Name == "allOf":
			f.work += len(old.Members) + len(m.Value.Members) + len(m.Value.Items)
			schema.Add(n, m)
		case m.Name == "type" && string(old.AppendTo(nil)) != string(m.Value.AppendTo(nil)):
			f.lose("a value of two types at once")
		}
	}
}
