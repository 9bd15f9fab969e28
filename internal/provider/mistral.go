package provider

import "github.com/toolreg/toolreg/internal/provider/rewrite"

// mistral declares functions for Mistral's chat completions, which have OpenAI's
// format and its rule for names.
func mistral() Format {
	return Format{
		Name:    "mistral",
		Summary: "Mistral chat completions tools",
		expects: "choices, a message with tool_calls, or a list of tool calls",
		decode:  decodeMistral,
		media:   mediaLimits{image: 15 << 20 / 4 * 3, pixels: 8000},
		callID:  "id",
		join:    joinOpenAI,
		reply:   replyMistral,
		rule:    dashedNames(),
		layout:  list,
		prepare: func(e *encoder, t *tool) {
			e.noStrict()
			e.changed(t, rewrite.TypeRoot(t.schema))
		},
		write: func(e *encoder, t *tool) {
			e.raw(`{"type":"function","function":`)
			e.named(t)
			e.raw(`,"parameters":`)
			e.value(t.schema)
			e.flag("strict", t.def.Provider.Strict)
			e.raw("}}")
		},
	}
}
