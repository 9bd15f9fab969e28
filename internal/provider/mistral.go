package provider

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/provider/rewrite"
)

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
		layout:  listLayout,
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

// decodeMistral decodes a chat completion of Mistral, its message, or a list of
// tool calls. They are like OpenAI's, but params may be an object, and errors
// differ.
func decodeMistral(t *Turn, raw json.RawMessage) error {
	if o := asObject(raw); !o.has("choices") && !o.has("tool_calls") {
		if isText(o["message"]) {
			return apiError(object{"error": o["message"]})
		}
		if o.has("detail") {
			return apiError(object{"error": o["detail"]})
		}
	}
	return decodeOpenAI(t, raw)
}

// replyMistral writes a message of role tool for each call. With many models
// these may have only text, and a message of role user may not follow one of
// role tool (error 3230), so images and documents are sent in a user message
// after a short assistant message.
func replyMistral(t *Turn, answers []Answer) []any {
	type toolMessage struct {
		Role    string          `json:"role"`
		Name    string          `json:"name"`
		ID      json.RawMessage `json:"tool_call_id"`
		Content string          `json:"content"`
	}
	var messages, media []any
	for i, a := range answers {
		text, blocks := t.textAndMedia(i, a, mistralMedia)
		messages = append(messages, toolMessage{"tool", t.format.repeated(t.Calls[i].Name), t.Calls[i].id, text})
		media = append(media, blocks...)
	}
	if len(media) > 0 {
		messages = append(messages, message{"assistant", "Show me the result of the tool."}, message{"user", media})
	}
	return messages
}

func mistralMedia(p part) any {
	switch {
	case p.isImage():
		return struct {
			Type string `json:"type"`
			URL  string `json:"image_url"`
		}{"image_url", p.dataURL()}
	case p.isPDF():
		return struct {
			Type string `json:"type"`
			URL  string `json:"document_url"`
			Name string `json:"document_name"`
		}{"document_url", p.dataURL(), p.fileName()}
	}
	return nil
}
