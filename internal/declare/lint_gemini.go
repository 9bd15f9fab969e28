package declare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

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

// gemini checks a schema against the type Schema of the Gemini API. What that
// type does not know is an error of the whole request.
func (c *checker) gemini(n *node, at *place) {
	if c.quick && c.refused {
		return
	}
	if n.kind != kindObject {
		c.refuse("schema_refused", at.pointer(), "a schema here is no object")
		return
	}
	for i := range n.members {
		m := &n.members[i]
		if c.quick && (!geminiKeyword(m.name) || !geminiValue(m)) {
			c.refused = true
			return
		}
		if !geminiKeyword(m.name) {
			c.refuse("keyword_refused", at.pointer(m.name), fmt.Sprintf("the API does not know the keyword %q", m.name))
		} else if !geminiValue(m) {
			c.refuse("value_refused", at.pointer(m.name), fmt.Sprintf("the API does not take %.40s here", m.value.appendTo(nil)))
		}
	}
	if format := n.get("format"); format != nil && !geminiFormat(lowered(n.get("type").text()), format.text()) {
		c.refuse("format_refused", at.pointer("format"), fmt.Sprintf("endpoints of 2025 do not take the format %.40q here", format.text()))
	}
	c.geminiType(n, at)
	properties := n.get("properties")
	if required := n.get("required"); required != nil {
		for _, r := range required.items {
			if properties.get(r.text()) == nil {
				c.refuse("required_unknown", at.pointer("required"), fmt.Sprintf("%q is required but not among the properties", r.text()))
			}
		}
	}
	if enum := n.get("enum"); enum != nil {
		for i, v := range enum.items {
			if v.kind != kindString {
				c.refuse("value_refused", at.pointer("enum", strconv.Itoa(i)), "the API takes strings alone as values of an enum")
			}
		}
	}
	if properties != nil {
		for i := range properties.members {
			m := &properties.members[i]
			c.gemini(m.value, &place{at, [2]string{"properties", m.name}})
		}
	}
	if items := n.get("items"); items != nil {
		c.gemini(items, &place{at, [2]string{"items"}})
	}
	if anyOf := n.get("anyOf"); anyOf != nil {
		for i, branch := range anyOf.items {
			c.gemini(branch, &place{at, [2]string{"anyOf", strconv.Itoa(i)}})
		}
	}
}

// geminiType checks the type and what it asks for.
func (c *checker) geminiType(n *node, at *place) {
	typ, properties := n.get("type"), n.get("properties")
	name := lowered(typ.text())
	switch {
	case typ != nil && typ.kind != kindString:
		c.refuse("type_refused", at.pointer("type"), "the API takes one type, not a list")
	case typ != nil && !geminiTypeName(name):
		c.refuse("type_refused", at.pointer("type"), fmt.Sprintf("the API has no type %.40q", typ.text()))
	case n.get("anyOf") != nil && len(n.members) > 1:
		c.refuse("union_not_alone", at.pointer("anyOf"), "the API wants anyOf to stand alone")
	case typ == nil && n.get("anyOf") == nil:
		c.refuse("type_missing", at.pointer(), "the API wants a type")
	case name == "object" && (properties == nil || len(properties.members) == 0):
		c.refuse("properties_missing", at.pointer(), "the API wants an object to name its properties")
	case name != "object" && properties != nil:
		c.refuse("properties_refused", at.pointer("properties"), "the API takes properties of objects alone")
	case name == "array" && n.get("items") == nil:
		c.refuse("items_missing", at.pointer(), "the API wants an array to say what it holds")
	}
}

// geminiParams tells of names of params that the documentation of Vertex AI does
// not allow: a letter or an underscore, then letters, digits and underscores, 64
// in all.
func (c *checker) geminiParams(schema *node) {
	rule := nameRule{letterFirst: true, max: 64}
	var odd []string
	var look func(n *node)
	look = func(n *node) {
		if properties := n.get("properties"); properties != nil {
			for _, m := range properties.members {
				if (m.name == "" || len(m.name) > rule.max || !rule.obeys(m.name)) && !slices.Contains(odd, m.name) {
					odd = append(odd, m.name)
				}
			}
		}
		eachSchema(n, look)
	}
	if look(schema); len(odd) == 0 {
		return
	}
	if more := len(odd) - maxNamed; more > 0 {
		odd = append(odd[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	c.add(registry.SeverityInfo, "param_name_odd", "", "names of params that Vertex AI's documentation does not allow: "+strings.Join(odd, ", "), "")
}

// geminiTypeName reports whether the API's enum Type has a name, in whatever
// case.
func geminiTypeName(name string) bool {
	switch lowered(name) {
	case "string", "number", "integer", "boolean", "array", "object", "null":
		return true
	}
	return false
}

// geminiFormat reports whether a format goes with a type. Newer endpoints take
// more of strings; those of 2025 refuse the whole request.
func geminiFormat(typ, format string) bool {
	switch typ {
	case "string":
		return format == "enum" || format == "date-time"
	case "number":
		return format == "float" || format == "double"
	case "integer":
		return format == "int32" || format == "int64"
	}
	return true
}

// geminiValue reports whether a keyword has a value of the kind that its field
// takes.
func geminiValue(m *member) bool {
	v := m.value
	switch m.name {
	case "format", "title", "description", "pattern":
		return v.kind == kindString
	case "nullable":
		return v.kind == kindTrue || v.kind == kindFalse
	case "enum", "required", "anyOf", "propertyOrdering":
		return v.kind == kindArray
	case "properties":
		return v.kind == kindObject
	case "minimum", "maximum":
		return v.kind == kindNumber
	case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties":
		_, err := strconv.ParseUint(v.token, 10, 63)
		return err == nil
	}
	return true
}

func (c *checker) refuse(code, pointer, message string) {
	c.refused = true
	c.add(registry.SeverityError, code, pointer, message, "exclude the tool, mend its schema, or give the tool by an MCP server, which is declared by parametersJsonSchema")
}

func geminiKeyword(name string) bool {
	switch name {
	case "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required",
		"minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering",
		"default", "items", "minimum", "maximum":
		return true
	}
	return false
}

func escapePointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
