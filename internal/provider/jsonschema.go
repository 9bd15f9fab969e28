package provider

import (
	"github.com/toolreg/toolreg/internal/jsonx"
)

// jsonSchema writes one JSON object with the input schema of each tool under its
// name, for validators and code generators. If a schema has no title or
// description, the tool's is added at the front; the rest is unchanged.
func jsonSchema() Format {
	return Format{
		Name:    "json-schema",
		Summary: "an object of JSON Schemas by tool name",
		rule:    nameRule{extra: ".-", max: 64},
		layout: func(Options) layout {
			return layout{open: "{", between: ",", close: "}", empty: "{}"}
		},
		prepare: func(e *encoder, t *tool) {
			e.noStrict()
			if t.schema.Get("description") == nil && t.def.Description != "" {
				t.schema.Prepend("description", jsonx.NewString(t.def.Description))
			}
			if t.schema.Get("title") == nil {
				t.schema.Prepend("title", jsonx.NewString(t.def.Name))
			}
		},
		write: func(e *encoder, t *tool) {
			e.string(t.name)
			e.raw(":")
			e.value(t.schema)
		},
	}
}
