package table

func overrideFields() []Row {
	return []Row{
		{Name: "name", Type: String, Doc: "Its name; the old one can no longer be called."},
		{Name: "displayName", Type: String, Doc: "Its name for people."},
		{Name: "description", Type: String, Doc: "Replaces its description."},
		{Name: "appendDescription", Type: String, Doc: "Added to its description, after an empty line."},
		{Name: "category", Type: String, Doc: "read, write, command, network, other. A project cannot choose one that the policy asks about less often."},
		{Name: "tags", Type: Strings, Doc: "Its tags."},
		{Name: "examples", Type: Objects, Strict: true, Fields: []Row{
			{Name: "description", Type: String, Doc: "What the example shows."},
			{Name: "params", Type: RawNamed, Doc: "Params of the call, with the names of the override."},
		}, Doc: "Its examples."},
		{Name: "hidden", Type: Bool, Doc: "Only steps of composites can call it."},
		{Name: "params", Type: Named, Strict: true, Fields: overrideParamFields(), Doc: "Changes to its params, by their names in the source."},
		{Name: "result", Type: String, Doc: "jq expression over {content, structuredContent, isError} whose value is the result; 1 s at most."},
		{Name: "deferLoading", Type: Bool, Doc: "Whether the model has to search for the tool instead of seeing its declaration from the start."},
		{Name: "strict", Type: Bool, Doc: "Whether calls must match the schema exactly."},
		{Name: "inputExamples", Type: Raw, Doc: "Example params, a list of objects with the names of the override."},
		{Name: "cacheControl", Type: Object, Strict: true, Fields: []Row{
			{Name: "ttl", Type: Choice, Choices: []string{"5m", "1h"}, Doc: "Lifetime of the cache."},
		}, Doc: "Marks the end of a part of the request that the provider caches."},
		{Name: "allowedCallers", Type: Strings, Doc: "Who may call the tool, in the provider's terms."},
		{Name: "outputSchema", Type: Raw, Doc: "true to declare its own output schema, false never to, or the schema to declare."},
		{Name: "eagerInputStreaming", Type: Bool, Doc: "Whether to stream params while the model writes them."},
		{Name: "behavior", Type: Choice, Choices: []string{"BLOCKING", "NON_BLOCKING"}, Doc: "For the Live API of Gemini."},
	}
}

func overrideParamFields() []Row {
	return []Row{
		{Name: "name", Type: String, Doc: "Its name."},
		{Name: "description", Type: String, Doc: "Its description."},
		{Name: "default", Type: Raw, Doc: "Declared as the default, and sent if a call has no value."},
		{Name: "const", Type: Raw, Doc: "Always sent; the param is not declared, and a call that names it is invalid."},
		{Name: "hidden", Type: Bool, Doc: "Not declared, and a call that names it is invalid; const or default is sent, or nothing."},
		{Name: "enum", Type: Raw, Doc: "The only values that it accepts, a list."},
	}
}
