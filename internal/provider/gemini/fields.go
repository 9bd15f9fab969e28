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
	case "$ref", "$defs", "definitions", "const", "oneOf", "allOf", "prefixItems", "additionalItems", "patternProperties":
		return true
	}
	return false
}
