package declare

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// gemini checks a schema against the type Schema of the Gemini API. What that
// type does not know is an error of the whole request.
func (c *checker) gemini(n *node, pointer string) {
	if n.kind != kindObject {
		c.refuse("schema_refused", pointer, "a schema here is no object")
		return
	}
	for _, m := range n.members {
		if !geminiKeyword(m.name) {
			c.refuse("keyword_refused", pointer+"/"+escapePointer(m.name), fmt.Sprintf("the API does not know the keyword %q", m.name))
		} else if !geminiValue(m) {
			c.refuse("value_refused", pointer+"/"+m.name, fmt.Sprintf("the API does not take %.40s here", m.value.appendTo(nil)))
		}
	}
	c.geminiType(n, pointer)
	properties := n.get("properties")
	if required := n.get("required"); required != nil {
		for _, r := range required.items {
			if properties.get(r.text()) == nil {
				c.refuse("required_unknown", pointer+"/required", fmt.Sprintf("%q is required but not among the properties", r.text()))
			}
		}
	}
	if enum := n.get("enum"); enum != nil {
		for i, v := range enum.items {
			if v.kind != kindString {
				c.refuse("value_refused", fmt.Sprintf("%s/enum/%d", pointer, i), "the API takes strings alone as values of an enum")
			}
		}
	}
	if properties != nil {
		for _, m := range properties.members {
			c.gemini(m.value, pointer+"/properties/"+escapePointer(m.name))
		}
	}
	if items := n.get("items"); items != nil {
		c.gemini(items, pointer+"/items")
	}
	if anyOf := n.get("anyOf"); anyOf != nil {
		for i, branch := range anyOf.items {
			c.gemini(branch, fmt.Sprintf("%s/anyOf/%d", pointer, i))
		}
	}
}

// geminiType checks the type and what it asks for.
func (c *checker) geminiType(n *node, pointer string) {
	typ, properties := n.get("type"), n.get("properties")
	isObject := lowered(typ.text()) == "object"
	switch {
	case typ != nil && typ.kind != kindString:
		c.refuse("type_refused", pointer+"/type", "the API takes one type, not a list")
	case typ != nil && !geminiTypeName(typ.text()):
		c.refuse("type_refused", pointer+"/type", fmt.Sprintf("the API has no type %.40q", typ.text()))
	case typ == nil && n.get("anyOf") == nil:
		c.refuse("type_missing", pointer, "the API wants a type")
	case isObject && (properties == nil || len(properties.members) == 0):
		c.refuse("properties_missing", pointer, "the API wants an object to name its properties")
	case !isObject && properties != nil:
		c.refuse("properties_refused", pointer+"/properties", "the API takes properties of objects alone")
	case lowered(typ.text()) == "array" && n.get("items") == nil:
		c.refuse("items_missing", pointer, "the API wants an array to say what it holds")
	}
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

// geminiValue reports whether a keyword has a value of the kind that its field
// takes.
func geminiValue(m member) bool {
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
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
