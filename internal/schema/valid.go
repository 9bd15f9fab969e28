package schema

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/toolreg/toolreg/internal/jsonx"
)

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

func (p *problem) at(index int) *problem { return p.within(strconv.Itoa(index)) }

// types are the possible values of the keyword type.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// isAnnotation reports whether a keyword restricts nothing.
func isAnnotation(keyword string) bool {
	switch keyword {
	case "title", "description", "$comment", "format", "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType":
		return true
	}
	return false
}

// isAssertion reports whether a keyword restricts values and has no schemas.
func isAssertion(keyword string) bool {
	switch keyword {
	case "type", "required", "enum", "const", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf",
		"maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "maxContains", "minContains",
		"pattern", "uniqueItems", "dependentRequired", "nullable":
		return true
	}
	return false
}

// wrongValue says what is wrong with the value of a keyword that contains no schemas. It
// returns "" if the value is right or the keyword is unknown.
func wrongValue(keyword string, v *jsonx.Value) string {
	ok, want := true, ""
	switch keyword {
	case "type":
		isType := func(v *jsonx.Value) bool { return v.Is(jsonx.String) && slices.Contains(types, v.Text()) }
		ok, want = isType(v) || v.Is(jsonx.Array) && len(v.Items) > 0 && !slices.ContainsFunc(v.Items, func(v *jsonx.Value) bool { return !isType(v) }), "is not a type or a list of types"
	case "required":
		ok, want = isNames(v), "is not a list of names"
	case "dependentRequired":
		ok, want = v.Is(jsonx.Object) && !slices.ContainsFunc(v.Members, func(m jsonx.Member) bool { return !isNames(m.Value) }), "is not an object with lists of names"
	case "enum", "examples":
		ok, want = v.Is(jsonx.Array), "is not a list"
	case "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum":
		ok, want = v.Is(jsonx.Number), "is not a number"
	case "multipleOf":
		n, err := strconv.ParseFloat(v.Token, 64)
		ok, want = v.Is(jsonx.Number) && err == nil && n > 0, "is not a positive number"
	case "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "maxContains", "minContains":
		n, err := strconv.ParseFloat(v.Token, 64)
		ok, want = v.Is(jsonx.Number) && err == nil && n >= 0 && n == math.Trunc(n), "is not a non-negative integer"
	case "pattern", "format", "title", "description", "$ref", "$schema", "$id", "$anchor", "$dynamicAnchor", "$comment", "contentEncoding", "contentMediaType":
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
