package declare

// mistral declares functions for Mistral's chat completions, which takes
// OpenAI's shape and its rule for names.
func mistral() Format {
	return Format{
		Name:    "mistral",
		Summary: "Mistral chat completions tools",
		rule:    dashedNames(),
		layout:  list,
		prepare: (*encoder).prepareTyped,
		write: func(e *encoder, t *tool) {
			e.raw(`{"type":"function","function":`)
			e.named(t)
			e.raw(`,"parameters":`)
			e.node(t.schema)
			e.raw("}}")
		},
	}
}

// prepareTyped makes the root say that it is an object.
func (e *encoder) prepareTyped(t *tool) {
	e.noStrict()
	e.changed(t, append(lowerTypes(t.schema), typedRoot(t.schema)...))
}
