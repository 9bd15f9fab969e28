package provider

import "github.com/toolreg/toolreg/internal/provider/rewrite"

// mistral declares functions for Mistral's chat completions, which have OpenAI's format and names.
func mistral() Format {
	return Format{
		Name:    "mistral",
		Summary: "Mistral chat completions tools",
		expects: "choices, a message with tool_calls, or a list of tool calls",
		decode:  decodeOpenAI,
		media:   mediaLimits{image: 15 << 20 / 4 * 3, pixels: 8000},
		callID:  "id",
		join:    joinOpenAI,
		reply:   replyMistral,
		rule:    dashedNames(),
		prepare: func(e *encoder, t *tool) {
			t.schema.Remove("$schema") // the API compiles no schema with these; no reference needs them
			t.schema.Remove("$id")
			e.changed(t, rewrite.TypeRoot(t.schema))
		},
		write: func(e *encoder, t *tool) {
			e.declare(t, `{"type":"function","function":{`, "parameters")
			e.flag("strict", t.def.Provider.Strict)
			e.raw("}}")
		},
	}
}

// replyMistral writes a message of role tool for each call. With many models
// these may have only text, and a message of role user may not follow one of
// role tool (error 3230), so images and documents are sent in a user message
// after a short assistant message.
func replyMistral(t *Turn, answers []Answer) []any {
	messages, media := t.toolMessages(answers, mistralMedia)
	if len(media) > 0 {
		messages = append(messages, message{"assistant", "Show me the result of the tool."}, message{"user", media})
	}
	return messages
}

func mistralMedia(p part) any {
	switch {
	case p.isImage():
		return mediaBlock{Type: "image_url", ImageURL: p.dataURL()}
	case p.isPDF():
		return mediaBlock{Type: "document_url", DocumentURL: p.dataURL(), DocumentName: p.fileName()}
	}
	return nil
}
