package table

func overrideFields() []Row {
	return []Row{
		{Name: "name", Type: String, Doc: "New name; the old one can no longer be called."},
		{Name: "displayName", Type: String, Doc: "Display name."},
		{Name: "description", Type: String, Doc: "Replaces its description."},
		{Name: "appendDescription", Type: String, Doc: "Text added to its description, after an empty line."},
		{Name: "category", Type: String, Doc: "read, write, command, network, other. A project cannot choose one that the policy asks about less often."},
		{Name: "tags", Type: Strings, Doc: "Its tags."},
		{Name: "examples", Type: Objects, Strict: true, Fields: []Row{
			{Name: "description", Type: String, Doc: "What the example shows."},
			{Name: "params", Type: RawNamed, Doc: "Params of the call, under their overridden names."},
		}, Doc: "Its examples."},
		{Name: "hidden", Type: Bool, Doc: "Hide the tool: only composites can call it."},
		{Name: "params", Type: Named, Strict: true, Fields: overrideParamFields(), Doc: "Changes to its params, by their names in the source."},
		{Name: "result", Type: String, Doc: "jq expression over {content, structuredContent, isError} whose value is the result; 1 s at most."},
		{Name: "deferLoading", Type: Bool, Doc: "Whether the model has to search for the tool instead of seeing its declaration from the start."},
		{Name: "strict", Type: Bool, Doc: "Whether calls must match the schema exactly."},
		{Name: "inputExamples", Type: Raw, Doc: "List of example params: objects with the overridden names."},
		{Name: "cacheControl", Type: Object, Strict: true, Fields: []Row{
			{Name: "ttl", Type: Choice, Choices: []string{"5m", "1h"}, Doc: "Lifetime of the cache entry."},
		}, Doc: "Marks the declaration as the end of a cached prefix of the request."},
		{Name: "allowedCallers", Type: Strings, Doc: "Who may call the tool, in the provider's terms."},
		{Name: "outputSchema", Type: Raw, Doc: "true to declare its own output schema, false to declare none, or the schema to declare."},
		{Name: "eagerInputStreaming", Type: Bool, Doc: "Whether to stream params while the model generates them."},
		{Name: "async", Type: Bool, Doc: "Whether the model may go on before it has the result of a call."},
		{Name: "behavior", Type: Choice, Choices: []string{"BLOCKING", "NON_BLOCKING"}, Doc: "Behavior in Gemini's Live API."},
	}
}

func overrideParamFields() []Row {
	return []Row{
		{Name: "name", Type: String, Doc: "New name."},
		{Name: "description", Type: String, Doc: "Its description."},
		{Name: "default", Type: Raw, Doc: "Value that is declared as the default, and sent if a call omits the param."},
		{Name: "const", Type: Raw, Doc: "Value that is always sent; the param is not declared, and a call that sets it is invalid."},
		{Name: "hidden", Type: Bool, Doc: "Do not declare the param; a call that sets it is invalid. Its const or default is sent, if any."},
		{Name: "enum", Type: Raw, Doc: "List of the only values that it accepts."},
	}
}
