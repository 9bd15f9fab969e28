package table

func overrideFields() []Row {
	return []Row{
		{Name: "name", Type: String, Doc: "Its name; the old one can no longer be called."},
		{Name: "displayName", Type: String, Doc: "Its name for people."},
		{Name: "description", Type: String, Doc: "Replaces its description."},
		{Name: "appendDescription", Type: String, Doc: "Added to its description, after an empty line."},
		{Name: "category", Type: String, Doc: "read, write, command, network, other. A project cannot make a tool one that policy asks about less."},
		{Name: "tags", Type: Strings, Doc: "Its tags."},
		{Name: "examples", Type: Objects, Strict: true, Fields: []Row{
			{Name: "description", Type: String, Doc: "What it shows."},
			{Name: "params", Type: RawNamed, Doc: "Params of the call, in the new shape."},
		}, Doc: "Its examples."},
		{Name: "hidden", Type: Bool, Doc: "Only steps of composites can call it."},
		{Name: "params", Type: Named, Strict: true, Fields: overrideParamFields(), Doc: "Its params, by the names that its source gives them."},
		{Name: "result", Type: String, Doc: "jq expression over {content, structuredContent, isError} whose value is the result; 1 s and 64 MiB at most."},
		{Name: "deferLoading", Type: Bool, Doc: "Whether a model finds it by a search instead of reading its declaration at the start."},
		{Name: "strict", Type: Bool, Doc: "Whether calls have to follow the schema to the letter."},
		{Name: "inputExamples", Type: Raw, Doc: "Params of calls, a list of objects in the new shape."},
		{Name: "cacheControl", Type: Object, Strict: true, Fields: []Row{
			{Name: "ttl", Type: Choice, Choices: []string{"5m", "1h"}, Doc: "For how long."},
		}, Doc: "Ends a part of the request that the provider caches."},
		{Name: "allowedCallers", Type: Strings, Doc: "Who may call it, in the provider's words."},
		{Name: "outputSchema", Type: Raw, Doc: "true to declare its own output schema, false never to, or the schema to declare."},
		{Name: "eagerInputStreaming", Type: Bool, Doc: "Whether params come as the model writes them."},
		{Name: "behavior", Type: Choice, Choices: []string{"BLOCKING", "NON_BLOCKING"}, Doc: "For the Live API of Gemini."},
	}
}

func overrideParamFields() []Row {
	return []Row{
		{Name: "name", Type: String, Doc: "Its name."},
		{Name: "description", Type: String, Doc: "Its description."},
		{Name: "default", Type: Raw, Doc: "Declared, and sent where a call has no value."},
		{Name: "const", Type: Raw, Doc: "Always sent; the param is not declared, and a call that names it is invalid."},
		{Name: "hidden", Type: Bool, Doc: "Not declared, and a call that names it is invalid; const or default is sent, or nothing."},
		{Name: "enum", Type: Raw, Doc: "The only values that it takes, a list."},
	}
}
