package gemini

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Problem is a part of a schema that the API rejects.
type Problem struct {
	Code    string // one word
	Pointer string // JSON Pointer into the schema
	Message string
}

// Check returns the parts of a schema that the API rejects, or nil if it accepts
// the schema.
func Check(schema *jsonx.Value) []Problem {
	var c checker
	c.schema(schema)
	return c.found
}

// Takes reports whether the API accepts a schema.
func Takes(schema *jsonx.Value) bool {
	c := checker{quick: true}
	c.schema(schema)
	return !c.refused
}

// Foreign reports whether a schema has a part that the API rejects and that
// [Sanitize] does not change. For most schemas this makes sanitizing and checking
// unnecessary.
func Foreign(n *jsonx.Value) bool {
	if !n.Is(jsonx.Object) {
		return true
	}
	for _, m := range n.Members {
		if !isKeyword(m.Name) || m.Name == "type" && m.Value.Is(jsonx.Array) {
			return true
		}
	}
	for _, m := range n.Get("properties").Fields() {
		if Foreign(m.Value) {
			return true
		}
	}
	items := n.Get("items")
	return items != nil && Foreign(items)
}

// checker checks one schema.
type checker struct {
	found   []Problem
	refused bool     // whether a problem was found
	quick   bool     // stop at the first problem
	path    []string // path of the current schema
}

// refuse records a problem with the schema at path, or with the value at the
// given steps from it.
func (c *checker) refuse(code string, steps []string, format string, args ...any) {
	c.refused = true
	if c.quick {
		return
	}
	pointer := ""
	for _, step := range slices.Concat(c.path, steps) {
		pointer += "/" + jsonx.EscapeToken(step)
	}
	c.found = append(c.found, Problem{code, pointer, fmt.Sprintf(format, args...)})
}

func (c *checker) schema(n *jsonx.Value, steps ...string) {
	if c.quick && c.refused {
		return
	}
	above := len(c.path)
	c.path = append(c.path, steps...)
	if n.Is(jsonx.Object) {
		c.keywords(n)
		c.format(n)
		c.typ(n)
		c.lists(n)
		c.within(n)
	} else {
		c.refuse("schema_refused", nil, "a schema must be an object")
	}
	c.path = c.path[:above]
}

func (c *checker) keywords(n *jsonx.Value) {
	for i := range n.Members {
		switch m := &n.Members[i]; {
		case !isKeyword(m.Name):
			c.refuse("keyword_refused", []string{m.Name}, "the API does not support the keyword %q", m.Name)
		case !takesValue(m):
			c.refuse("value_refused", []string{m.Name}, "the API does not accept %.40s here", m.Value.AppendTo(nil))
		}
	}
}

func (c *checker) format(n *jsonx.Value) {
	format := n.Get("format")
	if format != nil && !takesFormat(strings.ToLower(n.Get("type").Text()), format.Text()) {
		c.refuse("format_refused", []string{"format"},
			"endpoints of 2025 do not accept the format %.40q here", format.Text())
	}
}

// typ checks the type and its requirements.
func (c *checker) typ(n *jsonx.Value) {
	typ, anyOf, properties := n.Get("type"), n.Get("anyOf"), n.Get("properties")
	name := strings.ToLower(typ.Text())
	switch {
	case typ != nil && !typ.Is(jsonx.String):
		c.refuse("type_refused", []string{"type"}, "the API accepts one type, not a list")
	case typ != nil && !isType(name):
		c.refuse("type_refused", []string{"type"}, "the API has no type %.40q", typ.Text())
	case anyOf != nil && len(n.Members) > 1:
		c.refuse("union_not_alone", []string{"anyOf"}, "the API requires anyOf to be the only keyword")
	case typ == nil && anyOf == nil:
		c.refuse("type_missing", nil, "the API requires a type")
	case name == "object" && len(properties.Fields()) == 0:
		c.refuse("properties_missing", nil, "the API requires the properties of an object")
	case name != "object" && properties != nil:
		c.refuse("properties_refused", []string{"properties"}, "the API accepts properties only for objects")
	case name == "array" && n.Get("items") == nil:
		c.refuse("items_missing", nil, "the API requires the items of an array")
	case name != "array" && n.Get("items") != nil:
		c.refuse("items_refused", []string{"items"}, "the API accepts items only for arrays")
	}
}

// lists checks the values of required and enum.
func (c *checker) lists(n *jsonx.Value) {
	properties := n.Get("properties")
	for _, r := range n.Get("required").Elements() {
		if properties.Get(r.Text()) == nil {
			c.refuse("required_unknown", []string{"required"}, "%q is required but not among the properties", r.Text())
		}
	}
	if enum := n.Get("enum"); enum.Is(jsonx.Array) {
		if len(enum.Items) == 0 {
			c.refuse("value_refused", []string{"enum"}, "the API requires the values of an enum")
		}
		for i, v := range enum.Items {
			if v.Text() == "" {
				c.refuse("value_refused", []string{"enum", strconv.Itoa(i)},
					"the API accepts only non-empty strings as values of an enum")
			}
		}
	}
}

// within checks the direct subschemas of n.
func (c *checker) within(n *jsonx.Value) {
	for _, m := range n.Get("properties").Fields() {
		c.schema(m.Value, "properties", m.Name)
	}
	if items := n.Get("items"); items != nil {
		c.schema(items, "items")
	}
	for i, branch := range n.Get("anyOf").Elements() {
		c.schema(branch, "anyOf", strconv.Itoa(i))
	}
}
