package declare

import (
	"strings"

	"github.com/toolreg/toolreg/internal/declare/typescript"
)

// promptHead opens the text. The line it asks for is what `call --batch` reads.
const promptHead = `You can call the tools below. To call one, write a single line of JSON:
{"id":"1","name":"TOOL","params":{…}}
Each tool's params follow its JSON Schema. Results carry the id of the call.
`

// prompt writes the tools as text for a system prompt, for models without an
// API for tools. What comes from a tool is indented, so that no description can
// pass for another tool or for the instructions.
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

// indented writes every line of text behind the prefix, whatever ends lines in
// it, with valid UTF-8.
func (e *encoder) indented(prefix, text string) {
	for line := range strings.SplitSeq(typescript.Lines(text), "\n") {
		e.raw(strings.TrimRight(prefix+line, " \t"))
		e.raw("\n")
	}
}
