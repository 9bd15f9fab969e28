package search

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// Bounds of what is read of an input schema, which comes from outside.
const (
	maxDepth  = 8
	maxParams = 500
)

// Of returns what is searched of a definition. serverDescription is what the
// settings or the server itself say of its server.
func Of(d *registry.Definition, serverDescription string) Document {
	doc := Document{Name: d.PlainName(), DisplayName: d.DisplayName, Description: d.Description, Tags: d.Tags,
		Server: d.Server, ServerDescription: serverDescription}
	if d.IsMCP() {
		doc.DisplayName = "" // made of the other two
	}
	doc.addParams(d.InputSchema, 0)
	return doc
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
