package provider

import (
	"strings"

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
		layout: func(Options) layout {
			return layout{open: promptHead + "\n", between: "\n", empty: "There are no tools to call.\n"}
		},
		prepare: func(e *encoder, t *tool) { e.noStrict() },
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
