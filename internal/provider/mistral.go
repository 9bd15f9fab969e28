package provider

import "github.com/toolreg/toolreg/internal/provider/rewrite"

// mistral declares functions for Mistral's chat completions, which have OpenAI's
// format and its rule for names.
func mistral() Format {
	return Format{
		Name:    "mistral",
		Summary: "Mistral chat completions tools",
		decode:  decodeMistral,
		media:   mediaLimits{image: 15 << 20 / 4 * 3, pixels: 8000},
		callID:  "id",
		join:    joinOpenAI,
		reply:   replyMistral,
		rule:    dashedNames(),
		layout:  list,
		prepare: (*encoder).prepareMistral,
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

func (e *encoder) prepareMistral(t *tool) {
	e.noStrict()
	e.changed(t, rewrite.TypeRoot(t.schema))
}
