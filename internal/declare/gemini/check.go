package gemini

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Problem is one thing in a schema that the API refuses.
type Problem struct {
	Code    string // one word
	Pointer string // JSON Pointer into the schema
	Message string
}

// Check returns what of a schema the API refuses, nil where it takes it.
func Check(schema *jsonx.Value) []Problem {
	var c checker
	c.schema(schema, nil)
	return c.found
}

// Takes reports whether the API takes a schema.
func Takes(schema *jsonx.Value) bool {
	c := checker{quick: true}
	c.schema(schema, nil)
	return !c.refused
}

// Foreign reports whether a schema holds what the API refuses and [Sanitize]
// leaves as it is, which spares most schemas both.
func Foreign(n *jsonx.Value) bool {
	if !n.Is(jsonx.Object) {
		return true
	}
	for i := range n.Members {
		m := &n.Members[i]
		if !isKeyword(m.Name) || m.Name == "type" && m.Value.Is(jsonx.Array) {
			return true
		}
	}
	if properties := n.Get("properties"); properties != nil {
		for i := range properties.Members {
			if Foreign(properties.Members[i].Value) {
				return true
			}
		}
	}
	items := n.Get("items")
	return items != nil && Foreign(items)
}

// checker looks through one schema.
type checker struct {
	found   []Problem
	refused bool // something is among them
	quick   bool // one problem is enough, and nobody asks which
}

func (c *checker) refuse(code, pointer, format string, args ...any) {
	c.refused = true
	c.found = append(c.found, Problem{code, pointer, fmt.Sprintf(format, args...)})
}

func (c *checker) schema(n *jsonx.Value, at *place) {
	if c.quick && c.refused {
		return
	}
	if !n.Is(jsonx.Object) {
		c.refuse("schema_refused", at.pointer(), "a schema here is no object")
		return
	}
	if c.keywords(n, at); c.quick && c.refused {
		return
	}
	c.format(n, at)
	c.typ(n, at)
	c.lists(n, at)
	c.below(n, at)
}

func (c *checker) keywords(n *jsonx.Value, at *place) {
	for i := range n.Members {
		switch m := &n.Members[i]; {
		case isKeyword(m.Name) && takesValue(m):
		case c.quick:
			c.refused = true
			return
		case !isKeyword(m.Name):
			c.refuse("keyword_refused", at.pointer(m.Name), "the API does not know the keyword %q", m.Name)
		default:
			c.refuse("value_refused", at.pointer(m.Name), "the API does not take %.40s here", m.Value.AppendTo(nil))
		}
	}
}

func (c *checker) format(n *jsonx.Value, at *place) {
	format := n.Get("format")
	if format != nil && !takesFormat(strings.ToLower(n.Get("type").Text()), format.Text()) {
		c.refuse("format_refused", at.pointer("format"), "endpoints of 2025 do not take the format %.40q here", format.Text())
	}
}

// typ checks the type and what it asks for.
func (c *checker) typ(n *jsonx.Value, at *place) {
	typ, properties := n.Get("type"), n.Get("properties")
	name := strings.ToLower(typ.Text())
	switch {
	case typ != nil && !typ.Is(jsonx.String):
		c.refuse("type_refused", at.pointer("type"), "the API takes one type, not a list")
	case typ != nil && !isType(name):
		c.refuse("type_refused", at.pointer("type"), "the API has no type %.40q", typ.Text())
	case n.Get("anyOf") != nil && len(n.Members) > 1:
		c.refuse("union_not_alone", at.pointer("anyOf"), "the API wants anyOf to stand alone")
	case typ == nil && n.Get("anyOf") == nil:
		c.refuse("type_missing", at.pointer(), "the API wants a type")
	case name == "object" && (properties == nil || len(properties.Members) == 0):
		c.refuse("properties_missing", at.pointer(), "the API wants an object to name its properties")
	case name != "object" && properties != nil:
		c.refuse("properties_refused", at.pointer("properties"), "the API takes properties of objects alone")
	case name == "array" && n.Get("items") == nil:
		c.refuse("items_missing", at.pointer(), "the API wants an array to say what it holds")
	}
}

// lists checks what stands in required and enum.
func (c *checker) lists(n *jsonx.Value, at *place) {
	if required := n.Get("required"); required != nil {
		properties := n.Get("properties")
		for _, r := range required.Items {
			if properties.Get(r.Text()) == nil {
				c.refuse("required_unknown", at.pointer("required"), "%q is required but not among the properties", r.Text())
			}
		}
	}
	if enum := n.Get("enum"); enum != nil {
		for i, v := range enum.Items {
			if !v.Is(jsonx.String) {
				c.refuse("value_refused", at.pointer("enum", strconv.Itoa(i)), "the API takes strings alone as values of an enum")
			}
		}
	}
}

// below checks the schemas within n.
func (c *checker) below(n *jsonx.Value, at *place) {
	if properties := n.Get("properties"); properties != nil {
		for i := range properties.Members {
			m := &properties.Members[i]
			c.schema(m.Value, &place{at, [2]string{"properties", m.Name}})
		}
	}
	if items := n.Get("items"); items != nil {
		c.schema(items, &place{at, [2]string{"items"}})
	}
	if anyOf := n.Get("anyOf"); anyOf != nil {
		for i, branch := range anyOf.Items {
			c.schema(branch, &place{at, [2]string{"anyOf", strconv.Itoa(i)}})
		}
	}
}

// place is where a checker is; it becomes a JSON pointer where something is
// found, which is seldom.
type place struct {
	above *place // nil: the root
	steps [2]string
}

func (p *place) pointer(steps ...string) string {
	out := ""
	if p != nil {
		out = p.above.pointer(p.steps[0])
		if p.steps[1] != "" {
			out += "/" + escapePointer(p.steps[1])
		}
	}
	for _, s := range steps {
		out += "/" + escapePointer(s)
	}
	return out
}

func escapePointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
