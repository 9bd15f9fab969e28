package provider

import (
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/typescript"
)

// promptHead is the beginning of the text. It asks the model for lines that `call
// --batch` reads.
const promptHead = `You can call the tools below. To call one, write a single line of JSON:
{"id":"1","name":"TOOL","params":{…}}
Each tool's params follow its JSON Schema. Results carry the id of the call.
`

// prompt writes the tools as text for a system prompt, for models that have no API
// for tools. Text from tools is indented, so that a description cannot look like
// another tool or like the instructions.
func prompt() Format {
	return Format{
		Name:    "prompt",
		Summary: "text for a system prompt",
		Text:    true,
		rule:    nameRule{extra: ".-", max: 64},
		layout:  layout{open: promptHead + "\n", between: "\n", empty: "There are no tools to call.\n"},
		write: func(e *encoder, t *tool) {
			e.raw("## " + t.name + "\n")
			if description := strings.TrimSpace(t.def.Description); description != "" {
				e.indented("  ", description)
			}
			e.raw("  params: ")
			e.value(t.schema)
			e.raw("\n")
		},
	}
}

// indented writes every line of text with a prefix, as valid UTF-8. It recognizes
// all kinds of line breaks.
func (e *encoder) indented(prefix, text string) {
	for line := range strings.SplitSeq(typescript.Lines(text), "\n") {
		e.raw(strings.TrimRight(prefix+line, " \t"))
		e.raw("\n")
	}
}

// jsonSchema writes one JSON object with the input schema of each tool under its
// name, for validators and code generators. If a schema has no title or
// description, the tool's is added at the front; the rest is unchanged.
func jsonSchema() Format {
	return Format{
		Name:    "json-schema",
		Summary: "an object of JSON Schemas by tool name",
		rule:    nameRule{extra: ".-", max: 64},
		layout:  layout{open: "{", between: ",", close: "}", empty: "{}"},
		prepare: func(e *encoder, t *tool) {
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
