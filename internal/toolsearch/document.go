package toolsearch

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// Limits on how much of an untrusted input schema is read.
const (
	maxDepth  = 8
	maxParams = 500
)

// Of returns the searchable text of a definition. serverDescription is the
// description of its server in the settings or from the server itself.
func Of(d *registry.Definition, serverDescription string) Document {
	doc := Document{Name: d.PlainName(), DisplayName: d.DisplayName, Description: d.Description, Tags: d.Tags,
		Server: d.Server, ServerDescription: serverDescription, Names: append([]string{d.Name}, d.Aliases...), Deprecated: isDeprecated(d)}
	if d.OfServer() {
		doc.Names = append(doc.Names, d.Qualified())
	}
	if d.IsMCP() {
		doc.DisplayName = "" // derived from the other two
	}
	doc.addParams(d.InputSchema, 0)
	return doc
}

// isDeprecated reports whether a tool is marked as deprecated: by a tag, by an
// annotation, or by the first word of its description.
func isDeprecated(d *registry.Definition) bool {
	const mark = "deprecated"
	if slices.ContainsFunc(d.Tags, func(tag string) bool { return strings.EqualFold(tag, mark) }) {
		return true
	}
	if value := jsonx.Get(d.Annotations, mark); value != nil && string(value) != "false" && string(value) != "null" {
		return true
	}
	text := strings.TrimLeftFunc(d.Description, func(r rune) bool { return !unicode.IsLetter(r) })
	return len(text) >= len(mark) && strings.EqualFold(text[:len(mark)], mark)
}

// addParams adds the properties of a schema, and those of the schemas in it.
func (d *Document) addParams(schema json.RawMessage, depth int) {
	if depth == maxDepth {
		return
	}
	for key, value := range jsonx.Members(schema) {
		switch key {
		case "properties":
			for name, property := range jsonx.Members(value) {
				if len(d.Params) == maxParams {
					return
				}
				description, _ := jsonx.Text(jsonx.Get(property, "description"))
				d.Params = append(d.Params, Param{name, description})
				d.addParams(property, depth+1)
			}
		case "items", "additionalProperties":
			d.addParams(value, depth+1)
		case "anyOf", "oneOf", "allOf":
			branches, _ := jsonx.Elements(value)
			for _, branch := range branches {
				d.addParams(branch, depth+1)
			}
		}
	}
}
